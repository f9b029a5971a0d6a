"""From what the runs of a step showed to a verdict, its reasons and findings."""
