"""Joins the rooms, one file a job. A job takes a path and options and returns reports, and failures for what failed."""
