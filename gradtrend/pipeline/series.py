"""A path -> what was logged there, before any judgement."""

from __future__ import annotations

from typing import Any

import polars as pl

from gradtrend.model.report import Failure
from gradtrend.model.runlog import RunLog
from gradtrend.model.series import LoggedSeries
from gradtrend.model.words import Role
from gradtrend.pipeline.failures import each_log, found_runs
from gradtrend.pipeline.runs import AnalyzeOptions


def read_path(path: str, options: AnalyzeOptions) -> tuple[tuple[RunLog, ...], tuple[Failure, ...]]:
    """The run, or the runs, at `path` as read, without judgement."""
    outcomes = [each_log(job, options, lambda log: log) for job in found_runs(path, options)]
    return tuple(log for found, _ in outcomes for log in found), tuple(f for _, failed in outcomes for f in failed)


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
