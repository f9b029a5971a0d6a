"""Counters that start again every epoch -> steps of the whole run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

_MOST_EPOCHS = 1e9  # more are no epochs, and times their steps no integer
UNKNOWN = -1  # stands for "not given" in the integer arrays below

Ints = npt.NDArray[np.int64]


def whole_run_steps(
    epoch: Ints, counter: Ints, total: Ints, certain: bool = False, zero_based: bool = False, redrawn: bool = False
) -> Ints:
    """Steps of the whole run: (epoch - base) x iterations per epoch + counter.

    The arrays have one entry a logged row, UNKNOWN where not given. `certain` says that the format counts within the
    epoch; otherwise the counters are left alone unless they do go back when an epoch begins. A row with only an epoch
    stands at that epoch's end. The base is 0 where an epoch 0 is seen or `zero_based`, else 1. `redrawn` says that one
    row may come several times, as progress bars do; otherwise i = n again means a new epoch of n.
    """
    given = counter != UNKNOWN
    if not given.any() or not (certain or _restarts(epoch[given], counter[given], total[given], redrawn)):
        return counter.copy()
    known = epoch != UNKNOWN
    if not known[given].all():
        epoch = np.where(given, _count_restarts(counter, total, given, redrawn), UNKNOWN)
        known = given
    length = _per_epoch(counter[given], total[given])
    base = 0 if zero_based or int(epoch[known].min()) == 0 else 1
    steps = np.where(given & known, (epoch - base) * length + counter, UNKNOWN)
    return np.where(~given & known, (epoch - base + 1) * length, steps)


def _per_epoch(counter: Ints, total: Ints) -> int:
    if (total != UNKNOWN).any():
        return int(total[total != UNKNOWN].max())
    # Rows come every k iterations; the epoch ends with the last of them or less than k later.
    return int(counter.max()) + (1 if int(counter.min()) == 0 else 0)


def _restarts(epoch: Ints, counter: Ints, total: Ints, redrawn: bool) -> bool:
    if (epoch == UNKNOWN).any():
        return bool(_next_epoch(counter, total, redrawn).any())
    return bool(((np.diff(counter) < 0) & (np.diff(epoch) > 0)).any())


def _next_epoch(counter: Ints, total: Ints, redrawn: bool) -> npt.NDArray[np.bool_]:
    """Where a counter goes back after it came to its end: a new epoch. One that goes back earlier is a resumed run."""
    interval = int(np.median(np.abs(np.diff(counter)))) if len(counter) > 1 else 1
    finished = (total[:-1] != UNKNOWN) & (counter[:-1] >= total[:-1] - max(1, interval))
    back = np.diff(counter) < (0 if redrawn else 1)
    restarts: npt.NDArray[np.bool_] = back & finished & (total[1:] == total[:-1])
    return restarts


def _count_restarts(counter: Ints, total: Ints, given: npt.NDArray[np.bool_], redrawn: bool) -> Ints:
    """An epoch number (from 0) for rows that give none: one more at each restart."""
    epoch = np.zeros(len(counter), dtype=np.int64)
    epoch[given] = np.concatenate(([0], np.cumsum(_next_epoch(counter[given], total[given], redrawn))))
    return epoch


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
