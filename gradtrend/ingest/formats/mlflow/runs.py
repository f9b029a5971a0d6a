"""What all MLflow stores have in common: MLflow's spelling of infinity, points -> Reading."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.columns import Columns
from gradtrend.ingest.reading.stored_runs import StoredRun
from gradtrend.ingest.settings.names import settings_from
from gradtrend.model.runlog import Skipped

SQL_INFINITY = 1.797e308  # the largest double, which MLflow's SQL stores keep for infinity, is 1.7976931e308


def _restored(value: float) -> float:
    """A value with MLflow's stand-in for infinity turned back."""
    return math.copysign(math.inf, value) if abs(value) >= SQL_INFINITY else value


def add_point(columns: Columns, metric: str, step: int | None, value: float, time: int | None) -> None:
    """Append one stored value of a metric; `time` in milliseconds since the epoch."""
    seconds = None if time is None else time / 1000
    columns.of(metric).add(step, _restored(value), seconds, None)


def _in_time_order(points: pl.DataFrame) -> pl.DataFrame:
    """A metric's points in time order, equal times in the order logged.

    MLflow gives step 0 to every value that is logged without a step, so a metric with several values all at step 0 has
    no steps.
    """
    if points.height > 1 and points["step"].eq_missing(0).all():
        points = points.with_columns(step=pl.lit(None, pl.Int64))
    return points if points["time"].is_sorted() else points.sort("time", maintain_order=True)


def reading_of(
    path: Path,
    run: StoredRun,
    series: Mapping[str, pl.DataFrame],
    params: Mapping[str, str],
    skipped: Sequence[Skipped] = (),
) -> Reading:
    """The Reading of one run, from its points in the order they were stored."""
    return Reading(
        format="mlflow",
        path=path,
        series={metric: _in_time_order(points) for metric, points in series.items()},
        started=run.started,
        settings=settings_from(params),
        given=params,
        run=run,
    ).with_skipped(skipped)
