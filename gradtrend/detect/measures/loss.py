"""Measures of the loss and of the learning rate that it meets. The curve's series is the loss."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gradtrend.detect.curves.levels import median, spread
from gradtrend.detect.curves.loss import scatter_of
from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.series import FloatArray
from gradtrend.detect.curves.warmup import SWITCH_FACTOR
from gradtrend.detect.measures import spans
from gradtrend.detect.measures.measure import Measure

# Fewer points than this show neither a plateau nor a change of scatter.
_LEAST_POINTS = 40
# A loss that ends three times above the level of its first twentieth has not improved, whatever its peak was.
_FAR_ABOVE = 3.0


def _finite(curve: Curve) -> FloatArray:
    return np.zeros(0) if curve.progress is None else curve.progress.finite_values


def _loss_spike_factor(curve: Curve) -> float | None:
    """Height of the highest late spike of the loss over its local level, as a factor; None for a loss below zero."""
    if curve.shape is None or not len(_finite(curve)) or _finite(curve).min() < 0:
        return None
    return float(10 ** max((s.decades for s in curve.late_spikes), default=0.0))


def _loss_rise_factor(curve: Curve) -> float | None:
    """The loss at the end over its best level, as a factor; None where that is not positive."""
    seen = curve.divergence
    return None if seen is None or seen.best <= 0 else seen.end / seen.best


def _loss_rise_over_size(curve: Curve) -> float | None:
    """The same rise over the size of the loss at its start or its best, the larger, which holds for any sign."""
    seen = curve.divergence
    size = 0.0 if seen is None else max(abs(seen.best), abs(seen.early))
    return None if seen is None or size == 0 else (seen.end - seen.best) / size


def _loss_rise_over_noise(curve: Curve) -> float | None:
    """The same rise in standard deviations of the loss's point-to-point scatter."""
    return None if curve.divergence is None else curve.divergence.sigmas


def _loss_lost_share(curve: Curve) -> float | None:
    """The share of its progress that the loss has lost at its end; 1 and more where it ends no lower than it began."""
    return None if curve.divergence is None else min(curve.divergence.lost, 1e6)


def _loss_share_above_start(curve: Curve) -> float | None:
    """The share of the values of the loss that lie above the first one."""
    return None if curve.divergence is None else curve.divergence.above


def _loss_peak_over_start(curve: Curve) -> float | None:
    """The highest settled level of the loss over its first value, as a factor; None where that is not positive."""
    seen = curve.divergence
    return None if seen is None or seen.first <= 0 else seen.peak / seen.first


def _loss_peak_over_noise(curve: Curve) -> float | None:
    """How far the highest settled level of the loss lies above its first value, over its scatter."""
    return None if curve.divergence is None else curve.divergence.climb


def _loss_end_over_peak(curve: Curve) -> float | None:
    """The end of the loss over its highest settled level, as a factor; None where that is not positive."""
    seen = curve.divergence
    return None if seen is None or seen.peak <= 0 else seen.end / seen.peak


def _loss_fall_since_peak(curve: Curve) -> float | None:
    """How far the loss came down from its highest level to its end, as a share of that, where it was best at its very
    start: losses whose task grows at first rise so, and then improve. 0 where it was best later, or ends far above its
    early level.
    """
    if (seen := curve.divergence) is None:
        return None
    grew = seen.best_at_start and seen.peak > 0 and seen.end <= _FAR_ABOVE * seen.early
    return 1 - seen.end / seen.peak if grew else 0.0


def _loss_points(curve: Curve) -> float | None:
    """Finite points of the loss."""
    return float(len(_finite(curve)))


def _alternation(curve: Curve) -> float | None:
    """Share of the steps of the loss that turn back on the one before: 2/3 for white noise, 1 for an oscillation."""
    values = _finite(curve)
    if len(values) < _LEAST_POINTS:
        return None
    steps = np.diff(values[len(values) // 2 :])
    return float((steps[1:] * steps[:-1] < 0).mean())


def _loss_swing(curve: Curve) -> float | None:
    """Median step of the loss from point to point in the second half, relative to its level."""
    values = _finite(curve)
    if len(values) < _LEAST_POINTS:
        return None
    late = values[len(values) // 2 :]
    level = median(np.abs(late))
    return median(np.abs(np.diff(late))) / level if level > 0 else None


def _late_scatter_growth(curve: Curve) -> float | None:
    """Scatter of the loss in the last quarter over that in the second quarter of the run, as a factor."""
    values = _finite(curve)
    if len(values) < _LEAST_POINTS:
        return None
    quarter = len(values) // 4
    early, late = spread(np.diff(values[quarter : 2 * quarter])), spread(np.diff(values[-quarter:]))
    return late / early if early > 0 else None


def _loss_rise_after_lr_jump(curve: Curve) -> float | None:
    """How much the loss rose, relative to its level, across the worst upward jump of the learning rate; 0 without one.

    A jump is a change by half or more between two logged points that is not the warm-up.
    """
    lr, loss = curve.run.lr, curve.run.progress
    if lr is None or loss is None or len(lr) < 8 or len(values := loss.finite_values) < 8:
        return None
    rates = lr.values
    with np.errstate(divide="ignore", invalid="ignore"):
        jumps = np.flatnonzero((rates[1:] >= SWITCH_FACTOR * rates[:-1]) & (rates[:-1] > 0))
    warm = curve.run.warmup_end
    late = [i for i in jumps if warm is None or lr.steps[i] >= warm]
    places = np.searchsorted(loss.steps[loss.finite], lr.steps[1:][late])
    scatter = scatter_of(values)
    rises = [_rise_across(values, int(at), scatter) for at in places]
    return max((rise for rise in rises if rise is not None), default=0.0)


def _rise_across(values: FloatArray, at: int, scatter: float) -> float | None:
    near = max(3, len(values) // 20)
    before, after = values[max(0, at - near) : at], values[at : at + near]
    if len(before) < 3 or len(after) < 3 or (level := median(before)) <= 0:
        return None
    noise = scatter * np.sqrt(1 / len(before) + 1 / len(after))
    rise = median(after) - level
    return rise / level if rise > 4 * noise else 0.0


MEASURES: Mapping[str, Measure] = {
    "loss_spike_factor": Measure(
        _loss_spike_factor, "x", "highest late spike of the loss", spans.late_spikes, "the loss goes below zero"
    ),
    "loss_rise_factor": Measure(
        _loss_rise_factor, "x", "end of the loss over its best level", spans.loss_climb, "the loss is not positive"
    ),
    "loss_rise_over_size": Measure(
        _loss_rise_over_size,
        "x",
        "rise of the loss from its best level over its size",
        spans.loss_climb,
        "fewer than 4 losses",
    ),
    "loss_rise_over_noise": Measure(
        _loss_rise_over_noise,
        "sigma",
        "end of the loss over its best level",
        spans.loss_climb,
        "fewer than 4 losses",
    ),
    "loss_lost_share": Measure(
        _loss_lost_share, "share", "progress of the loss that is lost", spans.loss_climb, "fewer than 4 losses"
    ),
    "loss_share_above_start": Measure(
        _loss_share_above_start, "share", "values of the loss above the first", spans.loss_climb, "fewer than 4 losses"
    ),
    "loss_peak_over_start": Measure(
        _loss_peak_over_start,
        "x",
        "highest level of the loss over its first value",
        spans.loss_climb,
        "the loss is not positive",
    ),
    "loss_peak_over_noise": Measure(
        _loss_peak_over_noise,
        "sigma",
        "highest level of the loss over its first value",
        spans.loss_climb,
        "fewer than 4 losses",
    ),
    "loss_end_over_peak": Measure(
        _loss_end_over_peak, "x", "end of the loss over its highest level", spans.loss_climb, "the loss is not positive"
    ),
    "loss_fall_since_peak": Measure(
        _loss_fall_since_peak, "share", "fall of the loss since its peak", spans.loss_climb, "fewer than 4 losses"
    ),
    "loss_points": Measure(_loss_points, "points", "finite points of the loss", spans.whole, ""),
    "alternation": Measure(
        _alternation, "share", "steps of the loss that turn back", spans.whole, "fewer than 40 losses"
    ),
    "loss_swing": Measure(
        _loss_swing, "share", "typical step of the loss over its level", spans.whole, "fewer than 40 losses"
    ),
    "late_scatter_growth": Measure(
        _late_scatter_growth, "x", "scatter late over early", spans.whole, "fewer than 40 losses"
    ),
    "loss_rise_after_lr_jump": Measure(
        _loss_rise_after_lr_jump,
        "share",
        "rise of the loss at a jump of the learning rate",
        spans.whole,
        "no learning rate, or fewer than 8 points",
    ),
}
