"""Steps of the whole run for logs whose step starts again with every epoch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from gradtrend.ingest.reading.counters import UNKNOWN, whole_run_steps

_MOST_EPOCHS = 1e9  # more are no epochs, and times their steps no integer


def by_epoch_column(series: Mapping[str, pl.DataFrame]) -> Mapping[str, pl.DataFrame]:
    """A reading's series with steps of the whole run, where rows have an `epoch` with which their step restarts."""
    epochs = series.get("epoch", next((points for metric, points in series.items() if metric.lower() == "epoch"), None))
    if epochs is None or (epochs["step"].is_sorted() and epochs["line"].is_sorted()):  # nothing restarts
        return series
    usable = epochs.filter((pl.col("value").abs() < _MOST_EPOCHS) & pl.col("line").is_not_null())
    rows = usable.select("line", "step", epoch=pl.col("value")).drop_nulls().unique("line").sort("line")
    if rows.height < 2 or (rows["epoch"] % 1 != 0).any():
        return series
    unknown = np.full(rows.height, UNKNOWN, dtype=np.int64)
    counter = rows["step"].to_numpy()
    steps = whole_run_steps(rows["epoch"].cast(pl.Int64).to_numpy(), counter, unknown)
    if (steps == counter).all():
        return series
    whole = rows.select("line", whole=pl.Series(steps))
    return {metric: _renumbered(points, whole) for metric, points in series.items()}


def _renumbered(points: pl.DataFrame, whole: pl.DataFrame) -> pl.DataFrame:
    """The points with the step `whole` of their line, where it has one."""
    joined = points.join(whole, on="line", how="left", maintain_order="left")
    return joined.select(pl.coalesce("whole", "step").alias("step"), "value", "time", "line")
