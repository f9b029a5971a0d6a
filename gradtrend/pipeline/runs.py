"""A path -> the logs of its runs. What cannot be read is raised; `failures` puts values in its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gradtrend.ingest import SOURCES, Choice, ReadOptions, RunFiles, adapters_of, find_runs, load_runs
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


def check_source(source: str) -> None:
    """Raise `ConfigError` for a format that there is not, or that cannot be used."""
    adapters_of(source)


def whose_bug(source: str) -> str:
    """Who may have made an error while such logs were read and judged."""
    return "gradtrend" if source in SOURCES else f"gradtrend, or in the package that brings the format {source}"


def runs_at(path: str, options: AnalyzeOptions) -> tuple[RunFiles, ...]:
    """The runs at a path, at least one. Raises `InputError` where there is none."""
    return find_runs(path, options.source)


def logs_of(run: RunFiles, options: AnalyzeOptions) -> tuple[RunLog, ...]:
    """What a run folder holds, at least one log. Raises `InputError` where it cannot be read."""
    choice = Choice(options.metric, options.loss, options.lr)
    return load_runs(run, ReadOptions(options.run_id), choice)
