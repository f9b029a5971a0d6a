"""Several fits that wrote into one table at the same time, row by row -> each of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.names import name_metric
from gradtrend.model.words import Role

_MOST_FITS = 8
_LEAST_ROWS_A_STEP = 1.5
_LEAST_STEPS = 10  # that all have
_SHARE = 0.9  # of the steps that each fit has
# One fit's values are above the other's on so many of the common steps. Ranks of one run, or two seeds of one recipe,
# cross at every few: they are left together, as rows that say one step twice.
_SAME_ORDER = 0.9
_DIFFERENT = 0.01  # as sources that disagree do

_Floats = npt.NDArray[np.float64]


def fits_apart(reading: Reading) -> list[Reading]:
    """The fits that a table holds row by row, in the order in which they began; most tables hold one.

    The first row of a step is the first fit's, the second the second's: none of them overtakes another, as none can
    whose steps take as long. Of other formats several rows of one step are the ranks of a run, or its progress bar.
    """
    guide = _guide(reading) if reading.format == "csv" else None
    if guide is None or guide["line"].null_count() or not guide["line"].is_sorted():
        return [reading]
    if guide["step"].n_unique() > guide.height / _LEAST_ROWS_A_STEP:
        return [reading]
    rows = guide.with_columns(fit=pl.int_range(pl.len()).over("step"))
    count = int(rows.group_by("step").len()["len"].median() or 0)  # type: ignore[arg-type]  # of a column of numbers
    if not 1 < count <= _MOST_FITS:
        return [reading]
    fits = [rows.filter(pl.col("fit") == i).unique("step", maintain_order=True) for i in range(count)]
    if not all(_are_two(a, b, rows["step"].n_unique()) for a, b in pairwise(fits)):
        return [reading]
    return [_of_fit(reading, rows, i) for i in range(count)]


def _guide(reading: Reading) -> pl.DataFrame | None:
    """The rows by which fits are told apart: those of a loss, or of a gradient norm of the whole."""
    for role in (Role.LOSS, Role.GRAD_NORM):
        for metric, points in reading.series.items():
            naming = name_metric(metric)
            if naming.role is role and naming.layer is None:
                return points.filter(pl.col("step").is_not_null())
    return None


def _are_two(first: pl.DataFrame, second: pl.DataFrame, steps: int) -> bool:
    """Whether two have most steps, the second began before the first had done half of its, and their values differ in
    one direction.
    """
    if min(first.height, second.height) < max(_LEAST_STEPS, _SHARE * steps):
        return False
    if second["line"][0] > first["line"][first.height // 2]:
        return False  # one after another
    both = first.join(second, on="step")
    values: _Floats = both["value"].to_numpy()
    others: _Floats = both["value_right"].to_numpy()
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(values - others) > _DIFFERENT * np.maximum(np.abs(values), np.abs(others))
    above = (values > others)[apart]
    return bool(apart.mean() >= _SAME_ORDER and max(above.mean(), 1 - above.mean()) >= _SAME_ORDER)


def _of_fit(reading: Reading, rows: pl.DataFrame, fit: int) -> Reading:
    """The rows of one fit, by their lines; what was noticed of the table stands with the first."""
    lines = rows.filter(pl.col("fit") == fit)["line"].implode()
    held = {metric: points.filter(pl.col("line").is_in(lines)) for metric, points in reading.series.items()}
    series = {metric: points for metric, points in held.items() if points.height}
    return replace(reading, series=series) if not fit else replace(reading, series=series, skipped=(), skipped_count=0)
