"""One run of the step, and what watches it."""
