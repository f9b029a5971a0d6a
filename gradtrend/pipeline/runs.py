"""Logs -> the runs that they are. What cannot be read is raised; `failures` puts values in its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gradtrend.ingest import SOURCES, Choice, ReadOptions, RunFiles, RunParts, load_run, read_runs
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
    replay: bool = False
    trust: bool = False


def whose_bug(source: str) -> str:
    """Who may have made an error while such logs were read and judged."""
    return "gradtrend" if source in SOURCES else f"gradtrend, or in the package that brings the format {source}"


def runs_in(files: RunFiles, options: AnalyzeOptions) -> tuple[RunParts, ...]:
    """The runs that logs read together are, at least one."""
    return read_runs(files, ReadOptions(options.run_id), _choice(options))


def log_of(run: RunParts, options: AnalyzeOptions) -> RunLog:
    """One run as read. Raises `InputError` where nothing of it can be read."""
    return load_run(run, _choice(options))


def _choice(options: AnalyzeOptions) -> Choice:
    return Choice(options.metric, options.loss, options.lr)
