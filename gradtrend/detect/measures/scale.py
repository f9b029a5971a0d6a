"""Measures of the loss scale, and of a norm that moves with it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gradtrend.detect.curves.run import Curve
from gradtrend.detect.measures import spans
from gradtrend.detect.measures.measure import Measure

# One change of the loss scale that the norm follows may be chance.
_LEAST_JUMPS = 2


def _loss_scale_correlation(curve: Curve) -> float | None:
    """Share of the changes of the loss scale that the norm follows: 1 where it was logged before unscaling."""
    scale, series = curve.run.loss_scale, curve.series
    if scale is None or series is None:
        return None
    if np.count_nonzero(np.diff(scale.finite_values)) < _LEAST_JUMPS:
        return None
    _, a, b = np.intersect1d(series.steps[series.finite], scale.steps[scale.finite], return_indices=True)
    norm, factor = series.values[series.finite][a], scale.values[scale.finite][b]
    use = (norm > 0) & (factor > 0)
    if use.sum() < 8:
        return None
    jumps = np.diff(np.log2(factor[use]))
    changed = np.flatnonzero(jumps != 0)
    if len(changed) < _LEAST_JUMPS:
        return None
    moved = np.diff(np.log2(norm[use]))[changed]
    return float(np.mean(np.abs(moved - jumps[changed]) < 0.5))


def _loss_scale_end(curve: Curve) -> float | None:
    """The last loss scale."""
    scale = curve.run.loss_scale
    return None if scale is None or not scale.finite.any() else float(scale.finite_values[-1])


def _loss_scale_halvings(curve: Curve) -> float | None:
    """How often the loss scale was halved from its largest to its last value."""
    scale = curve.run.loss_scale
    if scale is None:
        return None
    values = scale.values[scale.finite & (scale.values > 0)]
    return float(np.log2(values.max() / values[-1])) if len(values) else None


MEASURES: Mapping[str, Measure] = {
    "loss_scale_end": Measure(_loss_scale_end, "", "the last loss scale", spans.whole, "no loss scale"),
    "loss_scale_halvings": Measure(
        _loss_scale_halvings, "halvings", "halvings of the loss scale", spans.whole, "no loss scale"
    ),
    "loss_scale_correlation": Measure(
        _loss_scale_correlation, "share", "jumps shared with the loss scale", spans.whole, "no loss scale"
    ),
}
