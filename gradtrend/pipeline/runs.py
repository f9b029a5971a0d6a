"""A run folder -> its logs. What cannot be read is raised; `failures` puts values in its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gradtrend.ingest import SOURCES, Choice, RunFiles, WantedRuns, load_runs
from gradtrend.model.runlog import RunLog


@dataclass(frozen=True, slots=True)
class AnalyzeOptions:
    """What the user said about one call."""

    metric: str | None = None
    loss: str | None = None
    lr: str | None = None
    source: str = "auto"
    run_ids: tuple[str, ...] = ()
    experiment: str | None = None
    newest: bool = False
    rules_dir: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    replay: bool = False
    trust: bool = False

    @property
    def wanted(self) -> WantedRuns:
        """Which runs of stores are wanted."""
        return WantedRuns(self.run_ids, self.experiment, self.newest)


def whose_bug(source: str) -> str:
    """Who may have made an error while such logs were read and judged."""
    return "gradtrend" if source in SOURCES else f"gradtrend, or in the package that brings the format {source}"


def logs_of(run: RunFiles, options: AnalyzeOptions) -> tuple[RunLog, ...]:
    """What a run folder holds, at least one log. Raises `InputError` where it cannot be read."""
    return load_runs(run, Choice(options.metric, options.loss, options.lr))
