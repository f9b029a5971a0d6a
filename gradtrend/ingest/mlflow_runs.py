"""What all MLflow stores have in common: choosing a run, MLflow's spelling of infinity, points -> Reading."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from gradtrend.errors import EmptyLogError, InputError
from gradtrend.ingest.reading import MAX_SKIPPED_KEPT, READING_SCHEMA, Reading
from gradtrend.ingest.settings import settings_from
from gradtrend.model.runlog import Note, Skipped

MAX_RUNS_LISTED = 10  # enough to find one's run again, short enough for one screen
SQL_INFINITY = 1.797e308  # the largest double, which MLflow's SQL stores keep for infinity, is 1.7976931e308


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run of a store. `started` is in seconds since the epoch; `place` is where the adapter finds it again."""

    id: str
    name: str | None
    started: float | None
    has_metrics: bool
    deleted: bool = False
    place: str = ""

    def __str__(self) -> str:
        when = "start unknown"
        if self.started is not None:
            with suppress(ValueError, OverflowError, OSError):  # a time far outside the calendar
                when = datetime.fromtimestamp(self.started, UTC).strftime("started %Y-%m-%d %H:%M:%S UTC")
        return f"{self.id} ({self.name or 'no name'}, {when})"


@dataclass(slots=True)
class Points:
    """Logged values of one run while they are gathered, in the order they were logged; times in milliseconds."""

    metrics: list[str] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    times: list[int | None] = field(default_factory=list)

    def add(self, metric: str, step: int | None, value: float, time: int | None) -> None:
        """Append one value."""
        self.metrics.append(metric)
        self.steps.append(step)
        self.values.append(value)
        self.times.append(time)


def choose_run(runs: Sequence[StoredRun], wanted: str | None, store: str) -> tuple[StoredRun, tuple[Note, ...]]:
    """Return the run to read: the wanted one (full id, name, or start of an id), else the newest that has metrics.

    Where nothing was asked for and there were others to choose from, a note lists them. Raises InputError where there
    is no such run, or nothing to read.
    """
    if wanted:
        return named_run(runs, wanted, store), ()
    usable = newest_first(run for run in runs if run.has_metrics and not run.deleted)
    if not usable:
        raise EmptyLogError(
            f"{store} holds no run with metrics ({len(runs)} runs in all)",
            "Check that the run logged metrics here, or give another store.",
        )
    chosen, others = usable[0], usable[1:]
    if not others:
        return chosen, ()
    message = (
        f"{store} holds {len(usable)} runs; read the newest, {chosen}. Others (--run-id picks one): {listed(others)}"
    )
    return chosen, (Note("several-runs", message),)


def named_run(runs: Sequence[StoredRun], wanted: str, store: str) -> StoredRun:
    """Return the run that `wanted` names. Raises InputError where it names none or several."""
    matches = (
        [run for run in runs if run.id == wanted]
        or [run for run in runs if run.name == wanted and not run.deleted]
        or [run for run in runs if run.id.startswith(wanted) and not run.deleted]
    )
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise InputError(
            f"--run-id {wanted} fits {len(matches)} runs of {store}",
            f"Give one full id: {listed(newest_first(matches))}",
        )
    present = newest_first(run for run in runs if not run.deleted)
    hint = f"It holds: {listed(present)}" if present else "It holds no runs."
    raise InputError(f"no run {wanted} in {store}", hint)


def newest_first(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """Return the runs by start time, newest first; those without one come last."""
    return sorted(runs, key=lambda run: -math.inf if run.started is None else run.started, reverse=True)


def listed(runs: Sequence[StoredRun]) -> str:
    """Return up to MAX_RUNS_LISTED runs in words."""
    more = len(runs) - MAX_RUNS_LISTED
    return "; ".join(str(run) for run in runs[:MAX_RUNS_LISTED]) + (f"; and {more} more" if more > 0 else "")


def restored(value: float) -> float:
    """Return a value with MLflow's stand-in for infinity turned back."""
    return math.copysign(math.inf, value) if abs(value) >= SQL_INFINITY else value


def table_of(points: Points) -> pl.DataFrame:
    """Return the points in time order, equal times in the order logged.

    MLflow gives step 0 to every value that is logged without a step, so a metric with several values all at step 0 has
    no steps.
    """
    steps = pl.Series("step", points.steps, dtype=pl.Int64)
    table = pl.DataFrame(
        {
            "metric": pl.Series(points.metrics, dtype=pl.String),
            "step": steps,
            "value": pl.Series(points.values, dtype=pl.Float64),
            "time": pl.Series(points.times, dtype=pl.Int64) / 1000,
            "line": pl.repeat(None, len(steps), dtype=pl.Int64, eager=True),
        },
        schema=READING_SCHEMA,
    )
    unstepped = ((pl.col("step") == 0).all() & (pl.len() > 1)).over("metric")
    return table.sort("time", maintain_order=True).with_columns(
        step=pl.when(unstepped).then(None).otherwise(pl.col("step"))
    )


def reading_of(
    path: Path,
    run: StoredRun,
    points: Points,
    params: Mapping[str, str],
    notes: tuple[Note, ...],
    skipped: Sequence[Skipped] = (),
) -> Reading:
    """Return the Reading of one run."""
    return Reading(
        format="mlflow",
        path=path,
        table=table_of(points),
        started=run.started,
        skipped=tuple(skipped[:MAX_SKIPPED_KEPT]),
        skipped_count=len(skipped),
        notes=notes,
        settings=settings_from(params),
    )
