"""Measures of what the loss gained while the norm changed."""

from __future__ import annotations

from collections.abc import Mapping

from gradtrend.detect.curves.loss import loss_scatter
from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.shape import Direction
from gradtrend.detect.curves.warmup import EARLY_SHARE
from gradtrend.detect.measures import spans
from gradtrend.detect.measures.measure import Measure

# A rise younger than this many points has not shown yet what it does to the loss.
_LOSS_ANSWERS = 8
_LEVEL = 3  # points


def _gain(curve: Curve, *windows: tuple[int, int]) -> float | None:
    return None if curve.run.descent is None else curve.run.descent.gain(*windows)


def _loss_gain_since_rise(curve: Curve) -> float | None:
    """How far the loss came since the rise began, as a share of where it was."""
    if (shape := curve.shape) is None or shape.rise.decades <= 0 or shape.points - shape.rise.onset < _LOSS_ANSWERS:
        return None
    return _gain(curve, *curve.before(shape.rise.onset))


def _loss_gain_since_fall(curve: Curve) -> float | None:
    """How far the loss came since the fall began, as a share of where it was."""
    if (fall := curve.fall) is None or fall.decades <= 0:
        return None
    return _gain(curve, *curve.before(fall.onset))


def _loss_gain_since_low(curve: Curve) -> float | None:
    """How far the loss came since the fall was half done (in decades), as a share of where it was."""
    if (shape := curve.shape) is None or shape.fall.held_from >= shape.points:
        return None
    return _gain(curve, curve.since(shape.fall.held_from))


def _loss_gain_since_first(curve: Curve) -> float | None:
    """How far the loss came since its first two values, as a share of where it was."""
    loss, descent = curve.progress, curve.descent
    if loss is None or descent is None or len(loss) < _LEVEL:
        return None
    return descent.gain((int(loss.steps[0]), int(loss.steps[1])))


def _loss_gain_late(curve: Curve) -> float | None:
    """How far the loss came after the first 15 % of its points, as a share of where it was."""
    loss = curve.run.progress
    if loss is None or len(loss) < _LOSS_ANSWERS:
        return None
    first = int(EARLY_SHARE * len(loss))
    last = first + max(3, len(loss) // 20) - 1
    return _gain(curve, (int(loss.steps[first]), int(loss.steps[min(last, len(loss) - 1)])))


def _loss_gain_overall(curve: Curve) -> float | None:
    """How far the loss came over the whole run, as a share of where it was."""
    return curve.loss_gain


def _loss_scatter_overall(curve: Curve) -> float | None:
    """Relative scatter of the loss over the run."""
    return loss_scatter(curve.progress)


MEASURES: Mapping[str, Measure] = {
    "loss_gain_since_rise": Measure(
        _loss_gain_since_rise,
        "share",
        "improvement of the loss since the rise",
        spans.whole,
        "no usable loss",
        change=Direction.UP,
    ),
    "loss_gain_since_fall": Measure(
        _loss_gain_since_fall,
        "share",
        "improvement of the loss since the fall",
        spans.whole,
        "no usable loss",
        change=Direction.DOWN,
    ),
    "loss_gain_since_low": Measure(
        _loss_gain_since_low,
        "share",
        "improvement of the loss since half the fall",
        spans.whole,
        "no usable loss",
        change=Direction.DOWN,
    ),
    "loss_gain_since_first": Measure(
        _loss_gain_since_first, "share", "improvement of the loss since its start", spans.whole, "no usable loss"
    ),
    "loss_gain_late": Measure(
        _loss_gain_late, "share", "improvement of the loss after the first 15 %", spans.whole, "no usable loss"
    ),
    "loss_gain_overall": Measure(
        _loss_gain_overall, "share", "improvement of the loss over the run", spans.whole, "no usable loss"
    ),
    "loss_scatter": Measure(
        _loss_scatter_overall, "share", "relative scatter of the loss", spans.whole, "no usable loss"
    ),
}
