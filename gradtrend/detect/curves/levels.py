"""Robust levels of a curve on a log scale: medians that single spikes cannot move."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from gradtrend.detect.curves.series import FloatArray, IntArray

# MAD of a normal distribution times this is its standard deviation.
_MAD_TO_SIGMA = 1.4826
# Below this scatter (2 % of the value) a log is quantised or noiseless; a smaller sigma would make bumps significant.
LEAST_NOISE = 0.01
# A window of more points than twice this is taken over the medians of blocks, at least two thirds of this many to the
# window: a level does not need the exact point at which it changes, and the cost stays linear at any length.
_BLOCKS_PER_WINDOW = 50


def window_of(points: int) -> int:
    """How many points make a level: a tenth of the run, at least 3, but at most a quarter of a short log."""
    return max(1, min(max(3, points // 10), points // 4))


def end_window(points: int) -> int:
    """How many last points say where a run ended: 0.5 % of it, at least 3; the last one where there are under 8.

    More would hide an explosion in the last percent of a long log.
    """
    return max(3, points // 200) if points >= 8 else 1


def trailing_median(y: FloatArray, window: int) -> FloatArray:
    """(n - window + 1,) medians of full windows; element i covers y[i : i + window]."""
    size = _block_size(window)
    return _spread_out(_full(_block_medians(y, size), window // size), size, len(y) - window + 1)


def levels_of(y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The medians of all full windows of a level, and (n,) the level around each point: what both need is done once.

    The level around a point is the median of a tenth of the run, at least nine points, one-sided at the ends. What both
    need are the blocks, and where both windows hold as many of them also the medians of all full windows.
    """
    window, around = window_of(len(y)), _local_window(len(y))
    size = _block_size(window)  # that of the other one, too: they differ by one point, or are short
    blocks = _block_medians(y, size)
    count, odd_count = window // size, around // size | 1
    centred = _centred(blocks, odd_count)
    full = centred[count // 2 : len(blocks) - count // 2] if count == odd_count else _full(blocks, count)
    return _spread_out(full, size, len(y) - window + 1), _spread_out(centred, size, len(y))


def upper_level(level: FloatArray) -> FloatArray:
    """(n,) the local level, or that of the blocks beside where it is higher: blocks place an edge only roughly, and
    points between the edge and where they place it are no spike.
    """
    reach = _block_size(_local_window(len(level)))
    if reach == 1:
        return level
    upper = level.copy()
    upper[:-reach] = np.maximum(level[:-reach], level[reach:])
    upper[reach:] = np.maximum(upper[reach:], level[:-reach])
    return upper


def _local_window(points: int) -> int:
    return max(9, points // 10) | 1


def _block_size(window: int) -> int:
    """Points of a block: 1 for short windows; odd, so that a block's median is one of its points."""
    return 1 if window < 2 * _BLOCKS_PER_WINDOW else window // _BLOCKS_PER_WINDOW | 1


def _block_medians(y: FloatArray, size: int) -> FloatArray:
    """Medians of consecutive blocks; the last may be shorter."""
    if size == 1:
        return y
    whole = len(y) // size * size
    medians = np.partition(y[:whole].reshape(-1, size), size // 2, axis=1)[:, size // 2]
    return medians if whole == len(y) else np.append(medians, median(y[whole:]))


# Values up to which a list is as good. polars asks numpy.ma about every array, and to load that takes 10 to 20 ms, as
# long as to read and judge a short log.
_SHORT = 1000


def _as_polars(values: FloatArray) -> pl.Series:
    """The values as polars has them."""
    return pl.Series(values.tolist(), dtype=pl.Float64) if len(values) <= _SHORT else pl.Series(values)


def _full(y: FloatArray, window: int) -> FloatArray:
    """(n - window + 1,) medians of full windows."""
    return _as_polars(y).rolling_median(window, min_samples=window).to_numpy()[window - 1 :]


def _centred(y: FloatArray, window: int) -> FloatArray:
    """(n,) medians of an odd window around each value, one-sided at the ends."""
    return _as_polars(y).rolling_median(window, min_samples=1, center=True).to_numpy()


def _spread_out(medians: FloatArray, size: int, points: int) -> FloatArray:
    """One value a point from one a block."""
    return medians if size == 1 else np.repeat(medians, size)[:points]


def smooth(y: FloatArray) -> FloatArray:
    """(n,) medians of three (of two at the ends): a single outlier vanishes, an edge stays where it is."""
    if len(y) < 5:
        return y
    low, high = np.minimum(y[:-2], y[1:-1]), np.maximum(y[:-2], y[1:-1])
    inner = np.maximum(low, np.minimum(high, y[2:]))
    return np.concatenate([[(y[0] + y[1]) / 2], inner, [(y[-2] + y[-1]) / 2]])


def noise_of(y: FloatArray, about_level: float) -> float:
    """Scatter in decades, as a standard deviation: `about_level`, the local one, or from point to point, the smaller.

    The first is misled by a steep curve of few points, the second by noise that alternates.
    """
    if len(y) < 5:
        return LEAST_NOISE
    steps = np.diff(y)
    return max(LEAST_NOISE, min(about_level, spread(steps - median(steps)) / math.sqrt(2)))


def spread(residual: FloatArray) -> float:
    """Standard deviation of a normal distribution with the same median absolute value."""
    return _MAD_TO_SIGMA * _median_in_place(np.abs(residual))


def median(values: FloatArray) -> float:
    """The median of values (n,) without NaN, n > 0; several times as fast as numpy's, which looks for NaN."""
    return _median_in_place(values.copy())


def pace_of(steps: IntArray) -> float | None:
    """Steps from one logged point to the next, median; None for fewer than two."""
    return median(np.diff(steps).astype(np.float64)) if len(steps) > 1 else None


def _median_in_place(values: FloatArray) -> float:
    middle = len(values) // 2
    values.partition(middle)
    return float(values[middle] if len(values) % 2 else values[:middle].max() / 2 + values[middle] / 2)


def quantile(values: FloatArray, share: float) -> float:
    """The quantile of values (n,), n > 0, between two of them by linear interpolation."""
    place = share * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    parted = np.partition(values, (below, above))
    low, high = float(parted[below]), float(parted[above])
    return low if low == high else (place - below) * (high - low) + low
