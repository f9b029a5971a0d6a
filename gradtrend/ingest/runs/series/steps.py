"""Steps of the whole run for logs whose step starts again with every epoch, and for logs without any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.counters import UNKNOWN, whole_run_steps
from gradtrend.ingest.reading.names import name_metric
from gradtrend.model.runlog import Skipped
from gradtrend.model.words import Role

_MOST_EPOCHS = 1e9  # more are no epochs, and times their steps no integer


def with_steps(reading: Reading) -> Reading:
    """Steps of the whole run for every row: counters within an epoch are added up, rows without a step numbered."""
    return _with_row_numbers(replace(reading, series=by_epoch_column(reading.series)))


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


def _with_row_numbers(reading: Reading) -> Reading:
    """The reading with steps where it has none: its rows are numbered from 0, and a note says so.

    Where some rows have a step, those without one are left out; a row of loss or gradient norm lost so is counted.
    """
    without = {metric for metric, points in reading.series.items() if points["step"].null_count()}
    if not without:
        return reading
    series = dict(reading.series)
    stepless = {metric for metric in without if series[metric]["step"].null_count() == series[metric].height}
    if stepless and (len(stepless) == len(series) or any(_is_judged(metric) for metric in stepless)):
        series |= _numbered({metric: series[metric] for metric in series if metric in stepless})
        return replace(reading, series=_with_steps_only(series), numbered=True)
    lost = [series[metric].filter(pl.col("step").is_null())["line"] for metric in without if _is_judged(metric)]
    lines = pl.concat(lost).unique().sort() if lost else ()
    rows = (Skipped("a row without a step", line=line) for line in lines)
    return replace(reading, series=_with_steps_only(series)).with_skipped(rows)


def _numbered(series: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The series with steps from row numbers: all of them are of metrics that never have one."""
    lines = pl.concat([points["line"] for points in series.values()])
    if lines.null_count():
        return {metric: points.with_columns(step=pl.int_range(pl.len())) for metric, points in series.items()}
    rows = lines.unique().sort()
    return {
        metric: points.with_columns(rows.search_sorted(points["line"]).cast(pl.Int64).alias("step"))
        for metric, points in series.items()
    }


def _with_steps_only(series: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The rows that have a step, of the metrics that have any."""
    stepped = ((metric, points.filter(pl.col("step").is_not_null())) for metric, points in series.items())
    return {metric: points for metric, points in stepped if points.height}


def _is_judged(metric: str) -> bool:
    return name_metric(metric).role in (Role.GRAD_NORM, Role.LOSS)
