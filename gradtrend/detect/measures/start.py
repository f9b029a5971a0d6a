"""Measures of a loss against its first value, the only one from before anything was trained."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from gradtrend.detect.curves.levels import smooth
from gradtrend.detect.curves.loss import scatter_of
from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.series import FloatArray
from gradtrend.detect.measures import spans
from gradtrend.detect.measures.measure import Measure

# Of fewer points than this a burst is most of the log.
_LEAST_POINTS = 40
# The first values that show the scatter of a loss.
_FEW = 8
# A noiseless curve has this much scatter, relative or in logarithms, so that no ratio is infinite.
_NO_SCATTER = 1e-3


def _finite(curve: Curve) -> FloatArray:
    return np.zeros(0) if curve.progress is None else curve.progress.finite_values


def _loss_share_below_start(curve: Curve) -> float | None:
    """The share of the values of the loss that do not lie above the first one."""
    return None if curve.divergence is None else 1 - curve.divergence.above


def _loss_early_over_start(curve: Curve) -> float | None:
    """The level of the first twentieth of a loss over its first value, as a factor; None where that is not positive."""
    seen = curve.divergence
    return None if seen is None or seen.first <= 0 else seen.early / seen.first


def _loss_end_over_start(curve: Curve) -> float | None:
    """The end of the loss over its first value, as a factor; None where that is not positive."""
    seen = curve.divergence
    return None if seen is None or seen.first <= 0 else seen.end / seen.first


def _loss_burst_over_start(curve: Curve) -> float | None:
    """The highest that two of three values of the loss reach, over its first one; None for a loss that is not positive
    throughout, or of fewer than 40 values.
    """
    values = _finite(curve)
    if len(values) < _LEAST_POINTS or values.min() <= 0:
        return None
    return float(smooth(values).max() / values[0])


def _loss_burst_over_noise(curve: Curve) -> float | None:
    """The same in standard deviations of the scatter from point to point, both as logarithms: a loss that scatters by a
    factor does so upward too.
    """
    if (burst := _loss_burst_over_start(curve)) is None:
        return None
    scatter = scatter_of(np.log(_finite(curve)))
    return math.log(burst) / max(scatter, _NO_SCATTER)


def _loss_peak_over_early_noise(curve: Curve) -> float | None:
    """How far the highest settled level of the loss lies above its first value, over the scatter of its first
    tenth alone: what came later is what is asked about.
    """
    if (seen := curve.divergence) is None:
        return None
    values = _finite(curve)
    scatter = scatter_of(values[: max(_FEW, len(values) // 10)])
    return (seen.peak - seen.first) / max(scatter, _NO_SCATTER * abs(seen.peak), 1e-300)


MEASURES: Mapping[str, Measure] = {
    "loss_share_below_start": Measure(
        _loss_share_below_start,
        "share",
        "values of the loss not above the first",
        spans.loss_burst,
        "fewer than 4 losses",
    ),
    "loss_early_over_start": Measure(
        _loss_early_over_start,
        "x",
        "early level of the loss over its first value",
        spans.loss_burst,
        "the loss is not positive",
    ),
    "loss_end_over_start": Measure(
        _loss_end_over_start, "x", "end of the loss over its first value", spans.loss_burst, "the loss is not positive"
    ),
    "loss_burst_over_start": Measure(
        _loss_burst_over_start,
        "x",
        "highest two of three values of the loss over its first",
        spans.loss_burst,
        "the loss is not positive, or fewer than 40 losses",
    ),
    "loss_burst_over_noise": Measure(
        _loss_burst_over_noise,
        "sigma",
        "burst of the loss over its scatter",
        spans.loss_burst,
        "the loss is not positive, or fewer than 40 losses",
    ),
    "loss_peak_over_early_noise": Measure(
        _loss_peak_over_early_noise,
        "sigma",
        "highest level of the loss over its early scatter",
        spans.loss_burst,
        "fewer than 4 losses",
    ),
}
