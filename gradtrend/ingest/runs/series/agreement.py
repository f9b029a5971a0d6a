"""Whether two logs of one series say the same at the steps that both have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from gradtrend.ingest.runs.series.tracks import Track
from gradtrend.model.runlog import Note

# Two sources of one series agree when the values differ by less than this (relative), or than the coarser one prints.
_TOLERANCE = 0.01
# Share of common steps that must differ before it is called a disagreement: loggers differ in averaging on a few rows.
_DISAGREE = 0.05
_FEWEST = 3  # common steps from which two sources can be compared


class _Agreement(NamedTuple):
    """How many steps are common, on how many of them the values agree, and the first on which they do not."""

    common: int
    same: int
    first_difference: int | None

    @property
    def holds(self) -> bool:
        """Whether the values agree on all but a few steps."""
        return self.same >= (1 - _DISAGREE) * self.common


def cross_check(best: Track, other: Track) -> Note | None:
    """A note where the two disagree at their common steps, or agree only with the steps of one moved by one."""
    tolerance = max(_TOLERANCE, 10.0 ** (1 - min(best.digits, other.digits)))
    a, b = best.last_values, other.last_values
    as_logged = _agreement(a, b, 0, tolerance)
    if as_logged.common and as_logged.holds:
        return None
    for shift in (1, -1):
        shifted = _agreement(a, b, shift, tolerance)
        if shifted.common >= _FEWEST and shifted.holds:
            return _step_base(best, other, shift)
    return _disagreement(best, other, as_logged) if as_logged.common >= _FEWEST else None


def _step_base(best: Track, other: Track, shift: int) -> Note:
    direction = "later" if shift < 0 else "earlier"
    message = f"{other.metric} in {other.format} counts steps one {direction} than {best.metric} in {best.format}"
    return Note("step-base", message, best.metric, measures=(("shift", float(-shift)),))


def _disagreement(best: Track, other: Track, found: _Agreement) -> Note:
    different = found.common - found.same
    message = (
        f"{best.format} and {other.format} disagree on {best.metric} at {different} of {found.common} common steps;"
        f" {best.format} is used"
    )
    share = different / found.common
    first = found.first_difference
    return Note("sources-disagree", message, best.metric, first, measures=(("disagreeing_share", share),))


def _agreement(a: pl.DataFrame, b: pl.DataFrame, shift: int, tolerance: float) -> _Agreement:
    """How far the values of two series agree, the steps of the second one moved by `shift`."""
    joined = a.select("step", "value").join(
        b.select(pl.col("step") + shift, pl.col("value").alias("other")), on="step", maintain_order="left"
    )
    x, y = joined["value"].to_numpy(), joined["other"].to_numpy()
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.abs(x - y) <= tolerance * np.maximum(np.abs(x), np.abs(y))
    agree = close | (x == y) | (~np.isfinite(x) & ~np.isfinite(y))
    different = np.flatnonzero(~agree)
    first = int(joined["step"][int(different[0])]) if different.size else None
    return _Agreement(joined.height, int(agree.sum()), first)
