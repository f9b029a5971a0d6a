"""A path -> what was logged there, before any judgement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from gradtrend.model.report import Failure
from gradtrend.model.runlog import RunLog
from gradtrend.model.series import LoggedSeries
from gradtrend.model.words import Role
from gradtrend.pipeline.apart import each_apart
from gradtrend.pipeline.failures import found_runs
from gradtrend.pipeline.inputs import check_no_input, logs_in
from gradtrend.pipeline.runs import AnalyzeOptions


def read_path(
    path: str, options: AnalyzeOptions, processes: int = 0, output: Path | None = None
) -> tuple[tuple[RunLog, ...], tuple[Failure, ...]]:
    """The run, or the runs, at `path` as read, without judgement; `processes` as `analyze_paths` has them.

    Raises `ConfigError` where `output`, the file of a table that is to be written, is read for it.
    """
    jobs = found_runs(path, options)
    if output is not None:
        check_no_input(output, [path], logs_in(jobs), None)
    outcomes = each_apart(jobs, options, _as_read, processes)
    return tuple(log for found, _ in outcomes for log in found), tuple(f for _, failed in outcomes for f in failed)


def _as_read(log: RunLog) -> RunLog:
    return log


def logged_series(log: RunLog) -> tuple[LoggedSeries, ...]:
    """The series of a run by role, the gradient norms first, and within a role as they were logged."""
    rows = log.table.group_by(pl.col("series").alias("metric"), maintain_order=True).agg(
        pl.col("role").first(),
        pl.col("layer").first(),
        pl.len().alias("points"),
        pl.col("step").min().alias("first_step"),
        pl.col("step").max().alias("last_step"),
        pl.col("segment").n_unique().alias("segments"),
        (~pl.col("value").is_finite()).sum().alias("nonfinite"),
    )
    series = [_series(row, log.reasons[row["metric"]]) for row in rows.iter_rows(named=True)]
    place = {role: i for i, role in enumerate(Role)}
    return tuple(sorted(series, key=lambda one: place[one.role]))


def _series(row: dict[str, Any], why: str) -> LoggedSeries:
    return LoggedSeries(**row | {"role": Role(row["role"]), "why": why})
