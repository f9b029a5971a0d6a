"""The table of a RunLog as arrays: one Series a metric, with only the rows that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from gradtrend.model.runlog import RunLog, rows_that_count
from gradtrend.model.words import Role

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
# Magnitudes are kept within these, so that no product or ratio of two values overflows. 32-bit logs end at 1e38.
_LARGEST, _SMALLEST = 1e150, 1e-150


@dataclass(frozen=True)
class Series:
    """One metric in step order: `steps` (n,) strictly increasing, `values` (n,) with NaN and inf kept.

    Magnitudes beyond 1e150 and below 1e-150 stand at these.
    """

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

    @cached_property
    def finite_values(self) -> FloatArray:
        """(m,) The values that are numbers, in step order."""
        return self.values if self.finite.all() else self.values[self.finite]

    def between(self, first_step: int, last_step: int) -> FloatArray:
        """Values at steps first_step..last_step, both included."""
        a, b = np.searchsorted(self.steps, [first_step, last_step + 1])
        return self.values[a:b]


def series_of(log: RunLog) -> tuple[Series, ...]:
    """All series but those of no role, in the order of the table."""
    table = log.table
    if not len(table):
        return ()
    starts = _starts(table)
    heads = table[starts, ["series", "role", "layer"]].rows()
    if len({metric for metric, _, _ in heads}) < len(starts):
        table = pl.concat(table.partition_by("series", maintain_order=True))
        starts = _starts(table)
        heads = table[starts, ["series", "role", "layer"]].rows()
    points = table.select("step", "value")
    return tuple(
        _series(str(metric), Role(role), layer, points.slice(start, stop - start))
        for (metric, role, layer), (start, stop) in zip(heads, pairwise([*starts, len(table)]), strict=True)
        if role != Role.OTHER.value
    )


def _starts(table: pl.DataFrame) -> list[int]:
    """The rows at which another series begins."""
    codes = table["series"].cast(pl.Categorical).to_physical().to_numpy()
    return [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist()]


def _series(metric: str, role: Role, layer: str | None, rows: pl.DataFrame) -> Series:
    steps, values = rows["step"].to_numpy(), rows["value"].to_numpy()
    if len(steps) > 1 and not (steps[1:] > steps[:-1]).all():
        keep = rows_that_count(steps)
        steps, values = steps[keep], values[keep]
    return Series(metric, role, layer, steps, _within_range(values))


def _within_range(values: FloatArray) -> FloatArray:
    size = np.abs(values)
    extreme = (size > _LARGEST) | (size < _SMALLEST)
    if not extreme.any():
        return values
    beyond = extreme & np.isfinite(values) & (values != 0)
    return np.where(beyond, np.copysign(np.clip(size, _SMALLEST, _LARGEST), values), values) if beyond.any() else values


_NEARLY_ALL = 0.9  # of the points of the most often logged layer: a cut file leaves a few layers one point short


def total_of(layers: Sequence[Series]) -> Series | None:
    """The gradient norm of the whole model from those of its layers: the root of the sum of their squares.

    Over the steps at which every layer is logged; None for fewer than two layers or no common step. A layer that is
    logged less often than the others is left out.
    """
    most = max((len(layer) for layer in layers), default=0)
    parts = [layer for layer in layers if len(layer) >= _NEARLY_ALL * most]
    if len(parts) < 2:
        return None
    steps = parts[0].steps
    for part in parts[1:]:
        steps = np.intersect1d(steps, part.steps, assume_unique=True)
    if not len(steps):
        return None
    squares = sum(np.square(part.values[np.searchsorted(part.steps, steps)]) for part in parts)
    return Series(f"total of {len(parts)} layers", Role.GRAD_NORM, None, steps, np.sqrt(squares))
