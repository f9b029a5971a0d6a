"""Where what a call says goes: files, pipes, the job's summary."""
