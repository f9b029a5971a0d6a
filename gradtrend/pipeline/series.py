"""A path -> what was logged there, before any judgement."""

from __future__ import annotations

from gradtrend.ingest import name_metric
from gradtrend.model.report import Failure
from gradtrend.model.runlog import RunLog
from gradtrend.pipeline.failures import each_log, found_runs
from gradtrend.pipeline.runs import AnalyzeOptions


def read_path(path: str, options: AnalyzeOptions) -> tuple[tuple[RunLog, ...], tuple[Failure, ...]]:
    """Read the run, or the runs, at `path` without judging."""
    outcomes = [each_log(job, options, lambda log: log) for job in found_runs(path, options)]
    return tuple(log for found, _ in outcomes for log in found), tuple(f for _, failed in outcomes for f in failed)


def explain_role(metric: str) -> str:
    """Why a metric has its role."""
    return name_metric(metric).why
