"""Robust levels of a curve on a log scale: medians that single spikes cannot move."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from gradtrend.detect.series import FloatArray

# MAD of a normal distribution times this is its standard deviation.
MAD_TO_SIGMA = 1.4826
# Below this scatter (2 % of the value) a log is quantised or noiseless; a smaller sigma would make bumps significant.
LEAST_NOISE = 0.01


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
    return pl.Series(y).rolling_median(window, min_samples=window).to_numpy()[window - 1 :]


def centred_median(y: FloatArray, window: int) -> FloatArray:
    """(n,) medians of windows around each point, one-sided at the ends."""
    return pl.Series(y).rolling_median(window, min_samples=1, center=True).to_numpy()


def smooth(y: FloatArray) -> FloatArray:
    """(n,) medians of three: a single outlier vanishes, an edge stays where it is."""
    return centred_median(y, 3) if len(y) >= 5 else y


def noise_of(y: FloatArray) -> float:
    """Scatter in decades, as a standard deviation: about the local level or from point to point, the smaller.

    The first is misled by a steep curve of few points, the second by noise that alternates.
    """
    if len(y) < 5:
        return LEAST_NOISE
    about_level = spread(y - centred_median(y, max(9, len(y) // 10) | 1))
    steps = np.diff(y)
    return max(LEAST_NOISE, min(about_level, spread(steps - np.median(steps)) / math.sqrt(2)))


def spread(residual: FloatArray) -> float:
    """Standard deviation of a normal distribution with the same median absolute value."""
    return MAD_TO_SIGMA * float(np.median(np.abs(residual)))
