"""Logs -> the runs that they are. What cannot be read is raised; `failures` puts values in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TypedDict

from gradtrend.detect.rules import Limits
from gradtrend.errors import ConfigError
from gradtrend.ingest import (
    SOURCES,
    Choice,
    ReadOptions,
    RunFiles,
    RunParts,
    WantedRuns,
    check_columns,
    load_run,
    read_runs,
)
from gradtrend.model.runlog import RunLog
from gradtrend.pipeline.selection import split_list


@dataclass(frozen=True, slots=True)
class AnalyzeOptions:
    """What the user said about one call; `announce` is told what a replay imports.

    `points` is how many points of each series the reports keep for charts; 0 where none is drawn. `hyperparameters`
    says that a run's are wanted with its log.

    Raises `ConfigError` for columns that cannot be, or of another format.
    """

    metric: str | None = None
    loss: str | None = None
    lr: str | None = None
    source: str = "auto"
    columns: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()
    experiment: str | None = None
    newest: bool = False
    rules_dir: Path | tuple[Path, ...] | None = None
    limits: Limits = field(default_factory=dict)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    replay: bool = False
    trust: bool = False
    announce: Callable[[str], None] | None = None
    points: int = 0
    hyperparameters: bool = False

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

    @property
    def wanted(self) -> WantedRuns:
        """Which runs of stores are wanted."""
        return WantedRuns(self.run_ids, self.experiment, self.newest)


def options_from(
    metric: str | None = None,
    loss: str | None = None,
    lr: str | None = None,
    source: str = "auto",
    run_id: str | Iterable[str] | None = None,
    experiment: str | None = None,
    newest: bool = False,
    columns: str | Iterable[str] = (),
    rules_dir: str | PathLike[str] | None = None,
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
) -> AnalyzeOptions:
    """The options as `gradtrend.analyze` takes them: one text or several, lists joined by commas."""
    return AnalyzeOptions(
        metric=metric,
        loss=loss,
        lr=lr,
        source=source,
        run_ids=words_of(run_id or ()),
        experiment=experiment,
        newest=newest,
        columns=tuple(map(str.strip, columns.split(","))) if isinstance(columns, str) else tuple(columns),
        rules_dir=None if rules_dir is None else Path(rules_dir),
        select=split_list(words_of(select)),
        ignore=split_list(words_of(ignore)),
    )


def words_of(given: str | Iterable[str]) -> tuple[str, ...]:
    """One text or several."""
    return (given,) if isinstance(given, str) else tuple(given)


class ReadingOptions(TypedDict, total=False):
    """The options of `gradtrend.analyze`, as `options_from` takes them."""

    metric: str | None
    loss: str | None
    lr: str | None
    source: str
    run_id: str | Iterable[str] | None
    experiment: str | None
    newest: bool
    columns: str | Iterable[str]
    rules_dir: str | PathLike[str] | None
    select: str | Iterable[str]
    ignore: str | Iterable[str]


def whose_bug(source: str) -> str:
    """Who may have made an error while such logs were read and judged."""
    return "gradtrend" if source in SOURCES else f"gradtrend, or in the package that brings the format {source}"


def runs_in(files: RunFiles, options: AnalyzeOptions) -> tuple[RunParts, ...]:
    """The runs that logs read together are, at least one."""
    return read_runs(files, ReadOptions(columns=options.columns, names=options.names), _choice(options))


def log_of(run: RunParts, options: AnalyzeOptions) -> RunLog:
    """One run as read. Raises `InputError` where nothing of it can be read."""
    return load_run(run, _choice(options), options.hyperparameters)


def _choice(options: AnalyzeOptions) -> Choice:
    return Choice(options.metric, options.loss, options.lr)
