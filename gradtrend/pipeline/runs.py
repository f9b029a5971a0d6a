"""A path -> the logs of its runs. What cannot be read is raised; `failures` puts values in its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gradtrend.errors import ConfigError
from gradtrend.ingest import ADAPTERS, Choice, ReadOptions, RunFiles, find_runs, load_runs
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
    """Raise `ConfigError` for a format that there is not."""
    if source not in source_names():
        known = ", ".join(source_names())
        raise ConfigError(f"--source: no format {source!r}", f"Known: {known}.")


def runs_at(path: str, options: AnalyzeOptions) -> tuple[RunFiles, ...]:
    """The runs at a path, at least one. Raises `InputError` where there is none."""
    return find_runs(path, options.source)


def logs_of(run: RunFiles, options: AnalyzeOptions) -> tuple[RunLog, ...]:
    """What a run folder holds, at least one log. Raises `InputError` where it cannot be read."""
    choice = Choice(options.metric, options.loss, options.lr)
    return load_runs(run, ReadOptions(options.run_id), choice)


def source_names() -> tuple[str, ...]:
    """What `--source` takes."""
    return ("auto", *(adapter.name for adapter in ADAPTERS))
