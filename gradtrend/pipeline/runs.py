"""A run folder -> its logs. What cannot be read is raised; `failures` puts values in its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gradtrend.ingest import SOURCES, Choice, ReadOptions, RunFiles, load_runs
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


def logs_of(run: RunFiles, options: AnalyzeOptions) -> tuple[RunLog, ...]:
    """What a run folder holds, at least one log. Raises `InputError` where it cannot be read."""
    choice = Choice(options.metric, options.loss, options.lr)
    return load_runs(run, ReadOptions(options.run_id), choice)
