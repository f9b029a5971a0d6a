"""Short excursions above the local level that come back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradtrend.detect.curves.levels import LEAST_NOISE, spread, upper_level
from gradtrend.detect.curves.series import FloatArray

# Excess over the local level that makes a point part of a spike: x4 (a level change of x4 is ordinary), in decades.
SPIKE_DECADES = 0.6
# ... and this many standard deviations of the log's own noise, so that heavy tails are not spikes.
_SPIKE_SIGMAS = 6.0
# Points this near to each other belong to one spike (share of the run).
_GAP_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Spike:
    """Indices first..last (included) of judged points, the index of the peak, its excess in decades and in sigmas, and
    how far (decades) the peak stands above everything before the spike.
    """

    first: int
    last: int
    peak: int
    decades: float
    sigmas: float
    beyond: float


def _settled_start(level: FloatArray) -> FloatArray:
    """The level, but at the very start, where windows are one-sided and a spike fills them, that of the next points."""
    edge = max(4, len(level) // 20)
    settled = level.copy()
    settled[:edge] = np.minimum(level[:edge], level[edge])
    return settled


def find_spikes(y: FloatArray, level: FloatArray) -> tuple[Spike, ...]:
    """Spikes of a curve y (n,) in log10: points above the local level (n,), the rolling median of a tenth of the run.

    A spike has a point before it (the first logged value of a run is often high: that is no spike), and has come back:
    as many points as it lasted, at least three, follow it.
    """
    n = len(y)
    if n < 8:
        return ()
    excess = y - _settled_start(upper_level(level))
    sigma = max(LEAST_NOISE, spread(excess))
    above = np.flatnonzero(excess > max(SPIKE_DECADES, _SPIKE_SIGMAS * sigma))
    if not len(above):
        return ()
    spikes = []
    for group in np.split(above, np.flatnonzero(np.diff(above) > max(1, int(_GAP_SHARE * n))) + 1):
        if group[0] == 0:
            continue
        first, last = int(group[0]), int(group[-1])
        if n - 1 - last < max(3, min(last - first + 1, n // 10)):
            continue
        peak = first + int(np.argmax(excess[first : last + 1]))
        height, beyond = float(excess[peak]), float(y[peak] - y[:first].max())
        spikes.append(Spike(first, last, peak, height, height / sigma, beyond))
    return tuple(spikes)
