"""Measures of one layer's norm beside the other layers and the total."""

from __future__ import annotations

from collections.abc import Mapping

from gradtrend.detect.curves.run import Curve, late_level
from gradtrend.detect.curves.shape import Direction
from gradtrend.detect.measures import spans
from gradtrend.detect.measures.measure import Measure


def _decades_below_other_layers(curve: Curve) -> float | None:
    """How far a layer's norm lies below the largest layer's, over the second half of the run."""
    top = curve.run.top_layer_level
    return None if curve.shape is None or top is None else top - late_level(curve.shape)


def _decades_end_below_layers(curve: Curve) -> float | None:
    """How far the end of a layer's norm lies below the level of the largest layer."""
    top = curve.run.top_layer_level
    return None if curve.shape is None or top is None else top - curve.shape.end


def _decades_above_total_rise(curve: Curve) -> float | None:
    """How much more a layer's norm rose than the total's."""
    if curve.shape is None:
        return None
    totals = [curve.run.curve(norm).shape for norm in curve.run.norms]
    rises = [max(0.0, t.rise.decades) for t in totals if t is not None]
    return curve.shape.rise.decades - max(rises, default=0.0)


MEASURES: Mapping[str, Measure] = {
    "decades_below_other_layers": Measure(
        _decades_below_other_layers, "decades", "below the top layer", spans.whole, "no layers"
    ),
    "decades_end_below_layers": Measure(
        _decades_end_below_layers, "decades", "end below the top layer", spans.whole, "no layers"
    ),
    "decades_above_total_rise": Measure(
        _decades_above_total_rise, "decades", "rise beyond that of the total norm", spans.rise, change=Direction.UP
    ),
}
