"""A run folder -> its logs. What cannot be read is raised; `failures` puts values in its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gradtrend.errors import ConfigError
from gradtrend.ingest import SOURCES, Choice, ReadOptions, RunFiles, check_columns, load_runs
from gradtrend.model.runlog import RunLog


@dataclass(frozen=True, slots=True)
class AnalyzeOptions:
    """What the user said about one call. Raises `ConfigError` for columns that cannot be, or of another format."""

    metric: str | None = None
    loss: str | None = None
    lr: str | None = None
    source: str = "auto"
    run_id: str | None = None
    columns: tuple[str, ...] = ()
    rules_dir: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    replay: bool = False
    trust: bool = False

    def __post_init__(self) -> None:
        if self.columns:
            check_columns(self.columns)
        if self.columns and self.source not in ("auto", "csv"):
            raise ConfigError(f"--columns names the columns of a table, not of {self.source}", "Leave --source out.")

    @property
    def format(self) -> str:
        """The format to be read: columns that are named are those of a table."""
        return "csv" if self.columns else self.source

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics that the user says are logged."""
        return tuple(name for name in (self.metric, self.loss, self.lr) if name is not None)


def whose_bug(source: str) -> str:
    """Who may have made an error while such logs were read and judged."""
    return "gradtrend" if source in SOURCES else f"gradtrend, or in the package that brings the format {source}"


def logs_of(run: RunFiles, options: AnalyzeOptions) -> tuple[RunLog, ...]:
    """What a run folder holds, at least one log. Raises `InputError` where it cannot be read."""
    choice = Choice(options.metric, options.loss, options.lr)
    return load_runs(run, ReadOptions(options.run_id, options.columns, options.names), choice)
