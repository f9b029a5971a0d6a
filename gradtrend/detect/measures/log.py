"""Whether a log can be judged at all: how many points, clipped, unreported, stale, or averaged norms."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gradtrend.detect.curves.levels import median, pace_of, spread
from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.series import FloatArray
from gradtrend.detect.measures import spans
from gradtrend.detect.measures.measure import Measure

# Values this near to each other (relative) are the same number: float32 keeps 1e-7, most loggers print 4 digits.
_SAME = 1e-5


def _finite_points(curve: Curve) -> float | None:
    """How many finite positive norms there are; None for a norm that only the trainer's warnings tell of."""
    series = curve.series
    if series is not None and any(
        n.metric == series.metric for n in curve.run.log.notes if n.kind == "skipped-updates"
    ):
        return None
    return 0.0 if curve.shape is None else float(curve.shape.points)


def _gradient_norms(curve: Curve) -> float | None:
    """How many total gradient norms there are; that of two layers or more counts, one layer is not the model."""
    return float(len(curve.run.norms))


def _share_at_top(curve: Curve) -> float | None:
    """Share of the finite norms that equal the largest one: a norm logged after clipping sits at the limit."""
    values = _finite(curve)
    if not len(values):
        return None
    return float((values >= values.max() * (1 - _SAME)).mean()) if values.max() > 0 else 0.0


def _share_at_one_value(curve: Curve) -> float | None:
    """Share of the finite norms that equal their median: a norm that is set to a constant."""
    values = _finite(curve)
    if not len(values):
        return None
    middle = median(values)
    return float((np.abs(values - middle) <= _SAME * middle).mean()) if middle > 0 else 0.0


def _share_of_zeros(curve: Curve) -> float | None:
    """Share of the finite norms that are exactly zero, but for steps whose loss is zero too (a satisfied margin)."""
    series, loss = curve.series, curve.run.loss
    if series is None or not series.finite.any():
        return None
    zero = series.finite & (series.values == 0)
    if loss is not None and zero.any():
        zero &= ~np.isin(series.steps, loss.steps[loss.values == 0])
    return float(zero.sum() / series.finite.sum())


def _zeros_at_end(curve: Curve) -> float | None:
    """How many exact zeros end the log, after a norm that was not zero; 0 where it began with them."""
    values = _finite(curve)
    positive = np.flatnonzero(values > 0)
    return float(len(values) - 1 - positive[-1]) if len(positive) and values[0] > 0 else 0.0


def _norm_ends_at(curve: Curve) -> float | None:
    """How far into the run's steps the norm is logged, as a share of them."""
    first, last = curve.run.span
    series = curve.series
    if series is None or not len(series) or last <= first:
        return None
    return (curve.run.logged_until(series) - first) / (last - first)


def _share_repeated(curve: Curve) -> float | None:
    """Share of the points that repeat the value before them exactly (of those that are neither zero nor the top)."""
    values = _finite(curve)
    if len(values) < 2:
        return None
    repeated = (values[1:] == values[:-1]) & (values[1:] > 0) & (values[1:] < values.max() * (1 - _SAME))
    return float(repeated.mean())


def _smoothness(curve: Curve) -> float | None:
    """Scatter from point to point over that about the local level: 1.4 for white noise, near 0 for an average."""
    shape = curve.shape
    if shape is None or shape.points < 40:
        return None
    return spread(np.diff(shape.y)) / shape.scatter if shape.scatter > 0 else None


def _share_over_clip(curve: Curve) -> float | None:
    """Share of the finite norms above the run's clipping limit."""
    clip = curve.run.log.settings.gradient_clip
    values = _finite(curve)
    return None if not clip or not len(values) else float((values > clip).mean())


def _steps_between_points(curve: Curve) -> float | None:
    """Steps from one logged norm to the next, median."""
    return None if curve.series is None else pace_of(curve.series.steps)


def _finite(curve: Curve) -> FloatArray:
    return np.zeros(0) if curve.series is None else curve.series.finite_values


MEASURES: Mapping[str, Measure] = {
    "finite_points": Measure(
        _finite_points, "points", "finite positive norms", spans.whole, "known from warnings alone"
    ),
    "gradient_norms": Measure(_gradient_norms, "series", "total gradient norms", spans.whole, ""),
    "share_at_top": Measure(_share_at_top, "share", "norms equal to the largest one", spans.whole),
    "share_at_one_value": Measure(_share_at_one_value, "share", "norms equal to their median", spans.whole),
    "share_of_zeros": Measure(_share_of_zeros, "share", "norms exactly zero", spans.whole),
    "zeros_at_end": Measure(_zeros_at_end, "points", "exact zeros that end the log", spans.whole),
    "norm_ends_at": Measure(_norm_ends_at, "share", "where in the run the norm ends", spans.whole, "no steps"),
    "share_repeated": Measure(
        _share_repeated, "share", "norms equal to the one before", spans.whole, "fewer than 2 finite norms"
    ),
    "smoothness": Measure(
        _smoothness, "ratio", "scatter from point to point over scatter about the level", spans.whole, "under 40 points"
    ),
    "share_over_clip": Measure(
        _share_over_clip, "share", "norms above the clipping limit", spans.whole, "the clipping limit is not known"
    ),
    "steps_between_points": Measure(
        _steps_between_points, "steps", "steps between logged norms", spans.whole, "fewer than 2 norms"
    ),
}
