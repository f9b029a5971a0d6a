"""Joins the rooms, one file a job. A job takes a path and options; where it reads several runs, one that fails becomes
a `Failure` beside what the others gave (`analyze_paths`, `read_path`), and elsewhere an error.
"""
