"""A wide, ragged hump in warm-up: points that jump up and down for a while and then settle."""

from __future__ import annotations

import numpy as np

from gradtrend.detect.curves.levels import median
from gradtrend.detect.curves.series import FloatArray

# So many points make a hump; fewer are a spike, which is found by itself.
_LEAST_POINTS = 5
# The points before it: one alone may be low by chance.
_BEFORE = 3
# A point belongs to the hump within x2 of its height.
_TOP = 0.3


def hump_height(y: FloatArray, early: int) -> float:
    """How far (decades) a hump among the first `early` points of y (n,) in log10 stands above both the first points and
    the level after it; 0 where there is none, or where it has not been over for as long as it lasted.
    """
    if early < _BEFORE + _LEAST_POINTS:
        return 0.0
    top = float(np.partition(y[:early], -_LEAST_POINTS)[-_LEAST_POINTS])
    high = np.flatnonzero(y[:early] >= top - _TOP)
    first, last = int(high[0]), int(high[-1])
    after = y[last + 1 :]
    if first < 1 or len(after) < max(2 * _LEAST_POINTS, last - first):
        return 0.0
    return max(0.0, min(top - median(y[: min(first, _BEFORE)]), top - median(after)))
