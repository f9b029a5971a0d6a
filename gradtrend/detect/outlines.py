"""Which points of a long series a chart needs: those that would be seen, and all that would be missed."""

from __future__ import annotations

from array import array

import numpy as np
import numpy.typing as npt

from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.series import FloatArray, IntArray, Series
from gradtrend.model.series import Outline

_PER_SHARE = 2  # lowest and highest; NaN and inf are seldom
_FEW = 4  # fewer points have no range that they are usually in
_MOST_SPIKES = 50  # more are one grey smear on any chart
_BAND = (0.05, 0.95)
_WIDEST = 100.0  # a norm that moves over more than two decades is not usually anywhere


def outline_of(curve: Curve, onset: int | None, most: int) -> Outline | None:
    """The outline of a curve's series in about `most` points; None without a point."""
    series = curve.series
    if series is None or not len(series):
        return None
    kept = kept_points(series.steps, series.values, most)
    steps, values = series.steps[kept], series.values[kept]
    return Outline(
        array("q", steps.astype(np.int64).tobytes()),
        array("d", values.astype(np.float64).tobytes()),
        _band(series, onset),
        _spikes(curve),
    )


def kept_points(steps: IntArray, values: FloatArray, most: int) -> npt.NDArray[np.intp]:
    """(k,) indices, rising, of the points of a series (n,) that are drawn; n where n <= most, else k <= 2 most + 2."""
    if len(steps) <= most:
        return np.arange(len(steps))
    shares = max(1, most // _PER_SHARE)
    place = (steps.astype(np.float64) - float(steps[0])) / max(1.0, float(steps[-1]) - float(steps[0]))
    share = np.minimum((place * shares).astype(np.int64), shares - 1)
    finite = np.isfinite(values)
    kept = [
        _first_in_share(share, np.isnan(values)),
        _first_in_share(share, np.isinf(values)),
        _lowest_in_share(share, np.where(finite, values, np.inf)),
        _lowest_in_share(share, np.where(finite, -values, np.inf)),
        np.array([0, len(steps) - 1]),
    ]
    return np.unique(np.concatenate(kept))


def _lowest_in_share(share: IntArray, values: FloatArray) -> npt.NDArray[np.intp]:
    starts = np.concatenate([[0], np.flatnonzero(np.diff(share)) + 1])
    lowest = np.minimum.reduceat(values, starts)
    lengths = np.diff(np.concatenate([starts, [len(share)]]))
    return _first_in_share(share, (values == np.repeat(lowest, lengths)) & np.isfinite(values))


def _first_in_share(share: IntArray, wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    found = np.flatnonzero(wanted)
    return found[np.unique(share[found], return_index=True)[1]]


def _band(series: Series, onset: int | None) -> tuple[float, float] | None:
    usual = series.finite & (series.values > 0)
    if onset is not None:
        usual &= series.steps < onset
    if usual.sum() < _FEW:
        return None
    low, high = np.quantile(series.values[usual], _BAND)
    return (float(low), float(high)) if high <= low * _WIDEST else None


def _spikes(curve: Curve) -> tuple[int, ...]:
    if curve.shape is None:
        return ()
    highest = sorted(curve.spikes, key=lambda spike: -spike.decades)[:_MOST_SPIKES]
    return tuple(int(curve.shape.steps[spike.peak]) for spike in highest)
