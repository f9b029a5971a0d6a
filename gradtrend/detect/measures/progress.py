"""Measures of what the loss gained while the norm changed."""

from __future__ import annotations

from collections.abc import Mapping

from gradtrend.detect.curves.case import Case
from gradtrend.detect.measures.measure import Measure

# A rise younger than this many points has not shown yet what it does to the loss.
_LOSS_ANSWERS = 8


def _gain(case: Case, *windows: tuple[int, int]) -> float | None:
    return None if case.run.descent is None else case.run.descent.gain(*windows)


def loss_gain_since_rise(case: Case) -> float | None:
    """How far the loss came since the rise began, as a share of where it was."""
    if (rise := case.rise) is None or case.shape is None or rise.decades <= 0:
        return None
    if case.shape.points - rise.onset < _LOSS_ANSWERS:
        return None
    return _gain(case, *case.before(rise.onset))


def loss_gain_since_fall(case: Case) -> float | None:
    """How far the loss came since the fall began, as a share of where it was."""
    if (fall := case.fall) is None or fall.decades <= 0:
        return None
    return _gain(case, *case.before(fall.onset))


def loss_gain_since_low(case: Case) -> float | None:
    """How far the loss came since the fall was half done (in decades), as a share of where it was."""
    if (fall := case.fall) is None or case.shape is None or fall.held_from >= case.shape.points:
        return None
    return _gain(case, case.since(fall.held_from))


def loss_gain_overall(case: Case) -> float | None:
    """How far the loss came over the whole run, as a share of where it was."""
    return case.run.loss_gain


def loss_scatter_overall(case: Case) -> float | None:
    """Relative scatter of the loss over the run."""
    return case.run.loss_scatter


MEASURES: Mapping[str, Measure] = {
    "loss_gain_since_rise": Measure(loss_gain_since_rise, "share", "loss gained since the rise", "no usable loss"),
    "loss_gain_since_fall": Measure(loss_gain_since_fall, "share", "loss gained since the fall", "no usable loss"),
    "loss_gain_since_low": Measure(loss_gain_since_low, "share", "loss gained since half the fall", "no usable loss"),
    "loss_gain_overall": Measure(loss_gain_overall, "share", "loss gained over the run", "no usable loss"),
    "loss_scatter": Measure(loss_scatter_overall, "share", "relative scatter of the loss", "no usable loss"),
}
