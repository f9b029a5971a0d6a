"""The table of a RunLog as arrays: one Series a metric, with only the rows that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from gradtrend.model.runlog import RunLog, rows_that_count
from gradtrend.model.words import Role

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Series:
    """One metric in step order: `steps` (n,) strictly increasing, `values` (n,) with NaN and inf kept."""

    metric: str
    role: Role
    layer: str | None
    steps: IntArray
    values: FloatArray

    def __len__(self) -> int:
        return len(self.steps)

    @cached_property
    def finite(self) -> BoolArray:
        """(n,) True where the value is a number."""
        return np.isfinite(self.values)

    def between(self, first_step: int, last_step: int) -> FloatArray:
        """Values at steps first_step..last_step, both included."""
        a, b = np.searchsorted(self.steps, [first_step, last_step + 1])
        return self.values[a:b]


def series_of(log: RunLog) -> tuple[Series, ...]:
    """All series but those of no role, in the order of the table."""
    table = log.table.filter(pl.col("role") != Role.OTHER.value)
    parts = table.partition_by("series", maintain_order=True, as_dict=True)
    return tuple(_series(str(metric), rows) for (metric,), rows in parts.items())


def _series(metric: str, rows: pl.DataFrame) -> Series:
    steps = rows["step"].to_numpy()
    values = rows["value"].to_numpy()
    if len(steps) > 1 and not (np.diff(steps) > 0).all():
        keep = rows_that_count(steps)
        steps, values = steps[keep], values[keep]
    layer = rows["layer"][0]
    return Series(metric, Role(rows["role"][0]), layer, steps, values)


def total_of(layers: Sequence[Series]) -> Series | None:
    """The gradient norm of the whole model from those of its layers: the root of the sum of their squares.

    Over the steps at which every layer is logged; None for fewer than two layers or no common step. A layer that is
    logged less often than the others is left out.
    """
    most = max((len(layer) for layer in layers), default=0)
    parts = [layer for layer in layers if len(layer) == most]
    if len(parts) < 2:
        return None
    steps = parts[0].steps
    for part in parts[1:]:
        steps = np.intersect1d(steps, part.steps, assume_unique=True)
    if not len(steps):
        return None
    squares = sum(np.square(part.values[np.searchsorted(part.steps, steps)]) for part in parts)
    return Series(f"total of {len(parts)} layers", Role.GRAD_NORM, None, steps, np.sqrt(squares))
