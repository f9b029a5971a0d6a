"""The shape of one gradient norm: where it is low, where it is high, how it ends, and since when.

Everything works on y = log10(norm), so that no number here depends on the scale of the norm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from gradtrend.detect.curves.levels import end_window, levels_of, median, noise_of, quantile, smooth, spread
from gradtrend.detect.curves.series import FloatArray, IntArray, Series

# A step counts as part of the change once the curve has covered this share of it.
_EDGE_SHARE = 0.1
# ... but the edge lies no further from the level than this (decades), and beyond its noise (3 sigma).
_EDGE_MOST = 0.5
_EDGE_SIGMAS = 3.0
# A changed state holds while this share of its points lies beyond the middle of the change; noise takes the rest.
_HELD_SHARE = 0.9
# Share of earlier points that counts as having been there before; the rest are spikes.
_HISTORY_QUANTILE = 0.98
# An excursion that came back fell by x4, the height of a spike, and by more than noise does.
_CAME_BACK = 0.6
_CAME_BACK_SIGMAS = 4.0
_CAME_BACK_SHARE = 0.7  # of its height
# A run whose first step is too large has so many values before it that no window is full of.
_FIRST = 2
# Zeros that end a log stand this far (decades) below its smallest value: well past what any rule asks.
_ZERO_DROP = 3.0
# A norm of ordinary size: at least a thousandth of the median of all positive ones.
_ORDINARY = 1e-3


class Direction(Enum):
    """Which way a level changes."""

    UP = "up"
    DOWN = "down"
    FROM_FIRST = "up from the first values"


@dataclass(frozen=True, slots=True)
class Change:
    """A lasting change of level: its size in decades, its first index, how many points it has lasted since then, and
    the index from which it is half done for good. `beyond` is how far (decades) the end lies outside all that was seen
    before it (inf if nothing was).
    """

    decades: float
    onset: int
    points: int
    held_from: int
    beyond: float


@dataclass(frozen=True, slots=True)
class Shape:
    """What one curve looks like. `steps` (n,) and `y` (n,) are the judged points: finite and positive.

    `levels` are the medians of full windows, `local` (n,) is the level around each point, `scatter` the deviation about
    it in decades, `noise` that or the one from point to point, the smaller; `baseline` is the lowest and `highest` the
    highest settled level, `end` where the curve ends, `climb` the
    change from its first values, which may be over before any level has settled.
    """

    steps: IntArray
    y: FloatArray
    levels: FloatArray
    local: FloatArray
    scatter: float
    noise: float
    baseline: float
    highest: float
    end: float
    rise: Change
    fall: Change
    climb: Change

    @property
    def points(self) -> int:
        """Judged points."""
        return len(self.y)

    def change(self, direction: Direction) -> Change:
        """The rise or the fall."""
        return {Direction.UP: self.rise, Direction.DOWN: self.fall, Direction.FROM_FIRST: self.climb}[direction]

    @property
    def larger(self) -> Change:
        """The rise or the fall, whichever is more decades."""
        return self.rise if self.rise.decades >= self.fall.decades else self.fall


def judged_points(series: Series) -> tuple[IntArray, FloatArray]:
    """Steps and log10 of the finite positive values.

    Zeros are "nothing to report" (a skipped update, a zero-advantage batch) and are left out, but for those after the
    last norm of ordinary size: they are where the norm went.
    """
    finite = series.finite & (series.values >= 0)
    steps, values = series.steps[finite], series.values[finite]
    positive = values > 0
    if positive.all():
        return steps, np.log10(values)
    if not positive.any():
        return steps[:0], values[:0]
    ordinary = values > _ORDINARY * median(values[positive])
    tail = int(np.flatnonzero(ordinary)[-1]) + 1
    kept = positive.copy()
    if len(values) - tail >= end_window(len(values)):
        kept[tail:] = True
    with np.errstate(divide="ignore"):
        y = np.log10(values[kept])
    y[~np.isfinite(y)] = float(y[np.isfinite(y)].min()) - _ZERO_DROP
    return steps[kept], y


def describe(series: Series, ends_nonfinite: bool) -> Shape | None:
    """The shape of a series, or None without a positive finite point.

    `ends_nonfinite` says that the log goes on in NaN or inf: then the last finite point alone says where it was going.
    """
    steps, y = judged_points(series)
    if not len(y):
        return None
    levels, local = levels_of(y)
    scatter = spread(y - local)
    noise = noise_of(y, scatter)
    smoothed = smooth(y)
    last = end_window(len(y))
    end = median(y[-last:])
    baseline, highest = float(levels.min()), float(levels.max())
    rise = _change(y, smoothed, baseline, end, noise)
    rise = replace(rise, onset=_last_start(y, smoothed, rise, noise))
    if ends_nonfinite:
        rise = max(rise, _last_point_rise(y, smoothed, baseline, noise), key=_weight)
    fall = _change(-y, -smoothed, -highest, -end, noise)
    climb = _change(y, smoothed, float(y[:_FIRST].max()), end, noise)
    return Shape(steps, y, levels, local, scatter, noise, baseline, highest, end, rise, fall, climb)


def _weight(change: Change) -> float:
    return change.decades if change.beyond > 0 else 0.0


def _change(y: FloatArray, smoothed: FloatArray, level: float, end: float, noise: float) -> Change:
    """The lasting rise of y from `level` to `end` (for a fall, call with the signs turned)."""
    decades = end - level
    if decades <= 0:
        return Change(decades, len(y), 0, len(y), 0.0)
    held_from = _held_from(y, level + decades / 2)
    edge = level + min(max(_EDGE_SHARE * decades, _EDGE_SIGMAS * noise), max(_EDGE_MOST, noise))
    before = np.flatnonzero(smoothed[: held_from + 1] <= edge)
    onset = min(int(before[-1]) + 1, len(y) - 1) if len(before) else 0
    beyond = end - quantile(y[:onset], _HISTORY_QUANTILE) if onset else float("inf")
    points = len(y) - onset if held_from < len(y) else 0
    return Change(decades, onset, points, held_from, beyond)


def _last_start(y: FloatArray, smoothed: FloatArray, rise: Change, noise: float) -> int:
    """The onset of a rise, or where an excursion that came back lies between it and the change: the first point of the
    change that is beyond everything before it.
    """
    onset, held_from = rise.onset, rise.held_from
    stretch = smoothed[onset : held_from + 1]
    if not len(stretch):
        return onset
    highest = np.maximum.accumulate(stretch)
    low = int(np.argmax(highest - stretch))
    fallen, height = float((highest - stretch)[low]), float(highest[low]) - float(smoothed[max(0, onset - 1)])
    if fallen <= max(_CAME_BACK, _CAME_BACK_SIGMAS * noise, _CAME_BACK_SHARE * height):
        return onset
    before = np.maximum.accumulate(y[: held_from + 1])
    within = np.flatnonzero(y[1 : held_from + 1] <= before[:-1])
    return max(onset, min(int(within[-1]) + 2, len(y) - 1)) if len(within) else onset


def _last_point_rise(y: FloatArray, smoothed: FloatArray, level: float, noise: float) -> Change:
    """The rise as the last point alone shows it: a run that steps up once and is NaN at the next step."""
    change = _change(y, smoothed, level, float(y[-1]), noise)
    if change.decades <= 0 or not change.onset:
        return change
    beyond = float(y[-1] - y[: change.onset].max())
    return replace(change, beyond=beyond)


def _held_from(y: FloatArray, middle: float) -> int:
    """The first index from which the points stay above `middle` to the end, but for a tenth of them; n if none do."""
    above = y > middle
    suffix_share = np.cumsum(above[::-1]) / np.arange(1, len(y) + 1)
    holds = above[::-1] & (suffix_share >= _HELD_SHARE)
    if not above[-1] and not holds[: max(2, len(y) // 20)].any():
        return len(y)
    longest = np.flatnonzero(holds)
    return len(y) - 1 - int(longest[-1]) if len(longest) else len(y)
