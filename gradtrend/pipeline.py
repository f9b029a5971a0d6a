"""Joins ingest and detect. Only the interface stands here yet; nothing is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gradtrend.model.report import Failure, RunReport
from gradtrend.model.rule import Rule
from gradtrend.model.runlog import RunLog


@dataclass(frozen=True, slots=True)
class AnalyzeOptions:
    """What the user said about one call."""

    metric: str | None = None
    loss: str | None = None
    lr: str | None = None
    source: str = "auto"
    run_id: str | None = None
    rules_dir: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


def analyze_path(path: str, options: AnalyzeOptions) -> tuple[tuple[RunReport, ...], tuple[Failure, ...]]:
    """Judge the run, or the runs, at `path`."""
    return (), (Failure(path, "cannot be read yet"),)


def read_path(path: str, options: AnalyzeOptions) -> tuple[tuple[RunLog, ...], tuple[Failure, ...]]:
    """Read the run, or the runs, at `path`."""
    return (), (Failure(path, "cannot be read yet"),)


def load_rules(rules_dir: Path | None) -> tuple[Rule, ...]:
    """All rules, those of `rules_dir` in place of ours."""
    return ()


def source_names() -> tuple[str, ...]:
    """The formats that `--source` takes."""
    return ("auto",)


def explain_role(metric: str) -> str:
    """Why a metric has its role."""
    return metric
