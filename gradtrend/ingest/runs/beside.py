"""A store beside other logs: which of its runs is theirs, told by equal values at equal steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.names import name_metric
from gradtrend.ingest.runs.series.agreement import TOLERANCE, agreement
from gradtrend.ingest.runs.series.steps import with_steps
from gradtrend.model.runlog import rows_that_count
from gradtrend.model.words import Role

Readings = Sequence[Reading]  # of one run: its parts
_LEAST_COMMON = 3  # steps, from which two series can be said to agree
_STEP_BASES = (0, 1, -1)  # one logger counts steps from 0, another from 1


class _Curves(NamedTuple):
    """What of a reading is compared: role, quantity and layer, and the rows that count, of each norm and loss."""

    digits: int
    series: Sequence[tuple[Role, tuple[str, str | None], pl.DataFrame]]


def of_stored_run(readings: Readings) -> list[Reading]:
    """The readings of a run of a store, and of those beside it the ones in its own folders or that agree with it."""
    stored = [reading for reading in readings if reading.run is not None]
    folders = [folder for reading in stored if reading.run is not None for folder in reading.run.folders]
    return [
        reading
        for reading in readings
        if reading.run is not None
        or any(reading.path.is_relative_to(folder) for folder in folders)
        or any(_same_fit(_curves_of(reading), _curves_of(one)) for one in stored)
    ]


def _same_fit(a: _Curves, b: _Curves) -> bool:
    """Whether two readings log the same values at the same steps, to the last that both have; by their gradient norms,
    or where these have no step in common or stand still by their losses.
    """
    tolerance = max(TOLERANCE, 10.0 ** (1 - min(a.digits, b.digits)))
    for role in (Role.GRAD_NORM, Role.LOSS):
        pairs = [(x, y) for (r, q, x) in a.series for (s, p, y) in b.series if r is s is role and q == p]
        told = [_equal(x, y, tolerance) for x, y in pairs]
        if any(one is not None for one in told):
            return any(told)
    return False


def _curves_of(reading: Reading) -> _Curves:
    series = []
    for metric, points in with_steps(reading).series.items():
        naming = name_metric(metric)
        if naming.role in (Role.GRAD_NORM, Role.LOSS):
            rows = points.select("step", "value").drop_nulls("step")
            last = rows.filter(pl.Series(rows_that_count(rows["step"].to_numpy())))
            series.append((naming.role, (naming.quantity, naming.layer), last))
    return _Curves(reading.digits, series)


def _equal(a: pl.DataFrame, b: pl.DataFrame, tolerance: float) -> bool | None:
    """Whether two series agree; None where they have too few steps in common, or stand still and so agree with any."""
    found = [agreement(a, b, shift, tolerance) for shift in _STEP_BASES]
    told = [one for one in found if one.common >= _LEAST_COMMON]
    if not told or _stands_still(a, tolerance) or _stands_still(b, tolerance):
        return None
    return any(one.holds and one.ends_alike for one in told)


def _stands_still(rows: pl.DataFrame, tolerance: float) -> bool:
    finite = rows.filter(pl.col("value").is_finite())["value"]
    low, high = finite.min(), finite.max()
    if not isinstance(low, float) or not isinstance(high, float):
        return True
    return high - low <= 2 * tolerance * max(abs(low), abs(high))
