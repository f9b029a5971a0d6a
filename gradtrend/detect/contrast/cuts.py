"""Where a number parts sick from healthy runs."""

from __future__ import annotations

import math

import numpy as np

from gradtrend.detect.contrast.columns import Mask
from gradtrend.detect.contrast.ranks import Floats
from gradtrend.model.many.contrast import Part, Spread

_CLEAN = 0.5  # of the sick runs' share above the cut less the healthy runs': below it many runs are on the wrong side
_FAR_APART = 2.0  # times: rates and decays are chosen by factors, layers and sizes by sums
_DIGITS = 17


def part_of(mask: Mask, sick: Mask) -> Part:
    """How many runs a mask has, and how many of them are sick."""
    return Part(int((mask & sick).sum()), int(mask.sum()))


def spread_of(values: Floats) -> Spread:
    """The least, median and largest of some values."""
    middle = np.sort(values)[[(values.size - 1) // 2, values.size // 2]]
    median = float(middle[0]) if middle[0] == middle[1] else float(middle.mean())
    return Spread(float(values.min()), median, float(values.max()))


def clean_cut(values: Floats, sick: Mask) -> tuple[float, str] | None:
    """The number above (or below) which the sick runs lie and the healthy ones do not, as nearly as there is one;
    None where no cut leaves most of both on their sides.
    """
    different, place = np.unique(values, return_inverse=True)
    ill = np.cumsum(np.bincount(place, weights=sick, minlength=different.size))
    well = np.cumsum(np.bincount(place, weights=~sick, minlength=different.size))
    above = (well / well[-1] - ill / ill[-1])[:-1]  # of each cut behind a value
    best = int(np.argmax(np.abs(above)))
    if abs(above[best]) < _CLEAN:
        return None
    return _between(float(different[best]), float(different[best + 1])), "above" if above[best] > 0 else "below"


def _between(low: float, high: float) -> float:
    """A number with few digits that is at least `low` and below `high`."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return low if math.isfinite(low) else -math.inf
    middle = math.sqrt(low) * math.sqrt(high) if low > 0 and high >= _FAR_APART * low else low + (high - low) / 2
    for digits in range(1, _DIGITS):
        rounded = float(f"{middle:.{digits}g}")
        if low <= rounded < high:
            return rounded
    return low
