"""Whether a loss left its best level upward for good: where it began, where it was best, where it ended."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradtrend.detect.curves.levels import median, smooth, spread, trailing_median, window_of
from gradtrend.detect.curves.loss import last_values, scatter_of
from gradtrend.detect.curves.series import FloatArray, Series

# Fewer points than this show no level that was left: 2, 3 and 900 may be a bad batch.
_LEAST_POINTS = 4
# From here on levels are medians; below, the last two values must both be high.
_LEVEL_POINTS = 8
# The level of the beginning: a twentieth of the points. The first one alone may be far too high (before the first
# step) or the best one that the run ever had, so both are looked at.
_EARLY_SHARE = 20
# Two values before a climb to twice the best level show its scatter; measured on noise alone: of logs of 5 to 16 values
# that scatter by 30 % one in 500 is then said to diverge, of those that scatter by a factor of two one in 60.
_LEAST_BEFORE, _CLIMBED = 2, 2.0
# A noiseless curve has this much scatter (relative), so that no ratio is infinite.
_NO_SCATTER = 1e-12
# The edge of the climb: a tenth of it above the best level.
_EDGE_SHARE = 0.1
# Of a climb of more than two decades a tenth would be its last points: there it begins at twice the best level.
_STEEP, _TWICE = 100.0, 2.0
# A loss of which fewer than one value in fifty lie below the first, and whose first twentieth lies above twice its best
# level, never came down: it left at once.
_ALL = 0.98
# A decade down again is another excursion.
_RELAPSE = 0.1


@dataclass(frozen=True, slots=True)
class Divergence:
    """The levels of a loss and its scatter (the standard deviation of one value, from point to point).

    `first` is the first value, `early` the level of the first twentieth, `best` the lowest settled level or the first
    value where that is lower, `peak` the highest settled level from then on, `end` where it ended; `climb` is how far
    the peak lies above the first value, over the scatter of the beginning, which may be larger. `onset` is the step
    from which it climbed to its end, `last` that of its last value, `above` the share of the values above the first;
    `best_at_start` says that the best level is that of the first twentieth.
    """

    first: float
    early: float
    best: float
    peak: float
    end: float
    scatter: float
    climb: float
    onset: int
    last: int
    above: float
    best_at_start: bool

    @property
    def lost(self) -> float:
        """Which share of its progress, from the early level to the best one, the loss has lost at its end; 1 and more
        where it ends at or above where it began, whether or not it ever came down.
        """
        progress, climbed = self.early - self.best, self.end - self.best
        if climbed <= 0:
            return 0.0
        return climbed / progress if progress > 0 else np.inf

    @property
    def sigmas(self) -> float:
        """The climb from the best level to the end over the scatter."""
        return (self.end - self.best) / max(self.scatter, _NO_SCATTER * abs(self.end - self.best), 1e-300)


def divergence_of(loss: Series) -> Divergence | None:
    """The levels of a loss; None under four finite values."""
    values, steps = loss.finite_values, loss.steps[loss.finite]
    if len(values) < _LEAST_POINTS:
        return None
    short = len(values) < _LEVEL_POINTS
    settled = values[:-2] if short else trailing_median(values, window_of(len(values)))
    end = float(values[-2:].min()) if short else median(last_values(values))
    first, lowest = float(values[0]), int(np.argmin(settled))
    best = min(first, float(settled[lowest]))
    best_at = 0 if first <= settled[lowest] else lowest
    peak = max(end, float(settled[best_at:].max()))
    above = float((values[1:] > first).mean())
    early = median(values[: max(1, len(values) // _EARLY_SHARE)])
    onset = _onset(values, best, best_at, end, at_once=above > _ALL and early > _TWICE * best)
    scatter = _scatter_before(values, onset, end / best if best > 0 else 0.0)
    beginning = max(scatter, _scatter(values[: max(_LEVEL_POINTS, len(values) // 10)]))
    return Divergence(
        first=first,
        early=early,
        best=best,
        peak=peak,
        end=end,
        scatter=scatter,
        climb=(peak - first) / max(beginning, _NO_SCATTER * abs(peak), 1e-300),
        onset=int(steps[onset]),
        last=int(steps[-1]),
        above=above,
        best_at_start=first <= settled[lowest] or lowest < len(values) // _EARLY_SHARE,
    )


def _scatter_before(values: FloatArray, onset: int, factor: float) -> float:
    """The scatter of a loss before it climbed by a factor. Of few values that is their largest step, which noise of any
    kind seldom passes eight times; of fewer that of the whole loss, the climb included.
    """
    if onset >= _LEVEL_POINTS:
        return _scatter(values[:onset])
    if onset >= _LEAST_BEFORE and factor >= _CLIMBED:
        return float(np.abs(np.diff(values[:onset])).max()) / math.sqrt(2)
    return _scatter(values)


def _scatter(values: FloatArray) -> float:
    """The standard deviation of one value: from point to point, or from the second differences, which a steady climb or
    decay does not touch, the smaller.
    """
    bent = np.diff(values, 2)
    return min(scatter_of(values), spread(bent) / math.sqrt(6)) if len(bent) > 2 else scatter_of(values)


def _onset(values: FloatArray, best: float, best_at: int, end: float, at_once: bool) -> int:
    """The index after the last level that was still near the best one; of a steep climb the first value beyond all
    before it, where it had come down again by a decade meanwhile, and where it left `at_once` the first level off.
    """
    steep = end > _STEEP * best > 0
    edge = _TWICE * best if steep else best + _EDGE_SHARE * max(0.0, end - best)
    levels = values if len(values) < _LEVEL_POINTS else smooth(values)
    if steep and at_once:
        return max(1, int(np.argmax(levels > edge)))
    near = best_at + np.flatnonzero(levels[best_at:] <= edge)
    left = min(int(near[-1]) + 1, len(values) - 1) if len(near) else best_at
    return left if not steep else left + _last_start(values[left:])


def _last_start(climb: FloatArray) -> int:
    """Where a climb begins for the last time: at its first value, or, where it fell by a decade, at the first value
    beyond all before that.
    """
    highest = np.maximum.accumulate(climb)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # of numbers beyond measure
        share = np.divide(climb, highest, out=np.ones_like(climb), where=highest > 0)  # a climb begins at zero
    low = int(np.argmin(share))
    beyond = np.flatnonzero(climb[low:] > highest[low])
    return low + int(beyond[0]) if climb[low] < _RELAPSE * highest[low] and len(beyond) else 0
