"""Which steps a measure speaks of: the first and the last, which a finding of it names."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from gradtrend.detect.curves.levels import smooth
from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.shape import Shape
from gradtrend.detect.curves.spikes import Spike

Steps = tuple[int | None, int | None]
# A loss of fewer points than this has no burst, and none that is less than twice its first value.
_LEAST_POINTS, _TWICE = 4, 2.0
# None where the curve has nothing of the kind.
Span = Callable[[Curve], Steps | None]


def collapse(curve: Curve) -> Steps:
    """The stretch that is non-finite for good, to the end of the series that are."""
    run = curve.run
    first = run.nonfinite.collapse_step
    if first is None:
        return None, None
    return first, max((int(s.steps[-1]) for s in (*run.norms, *run.losses) if not s.finite[-1]), default=first)


def nonfinite(curve: Curve) -> Steps:
    """From the first non-finite value of any total norm or loss to the last."""
    run = curve.run
    steps = [int(step) for series in (*run.norms, *run.losses) for step in series.steps[~series.finite]]
    return min(steps, default=None), max(steps, default=None)


def early_spikes(curve: Curve) -> Steps | None:
    """From the first spike of warm-up to the last."""
    return _spikes(curve, curve.early_spikes)


def late_spikes(curve: Curve) -> Steps | None:
    """From the first spike after warm-up to the last."""
    return _spikes(curve, curve.late_spikes)


def _spikes(curve: Curve, spikes: tuple[Spike, ...]) -> Steps | None:
    if not spikes:
        return None
    assert curve.shape is not None
    return int(curve.shape.steps[spikes[0].first]), int(curve.shape.steps[spikes[-1].last])


def rise(curve: Curve) -> Steps | None:
    """The rise to the end."""
    return _to_the_end(curve, lambda shape: shape.rise.onset)


def climb(curve: Curve) -> Steps | None:
    """The rise from the first values to the end."""
    return _to_the_end(curve, lambda shape: shape.climb.onset)


def fall(curve: Curve) -> Steps | None:
    """The fall to the end."""
    return _to_the_end(curve, lambda shape: shape.fall.onset)


def loss_climb(curve: Curve) -> Steps | None:
    """From where the loss left its best level to its end."""
    return None if curve.divergence is None else (curve.divergence.onset, curve.divergence.last)


def loss_burst(curve: Curve) -> Steps | None:
    """From where the loss first left its first value by a factor of two, with two of three values, to its end."""
    loss = curve.progress
    if loss is None or len(loss.finite_values) < _LEAST_POINTS:
        return None
    off = np.flatnonzero(smooth(loss.finite_values) > _TWICE * loss.finite_values[0])
    return (int(loss.steps[loss.finite][max(1, off[0])]), int(loss.steps[-1])) if len(off) else None


def last_points(curve: Curve) -> Steps | None:
    """The last judged point, or the last two where both are high."""
    return _to_the_end(curve, lambda shape: shape.points - (2 if len(shape.y) > 2 and _both_high(shape) else 1))


def _both_high(shape: Shape) -> bool:
    before = float(shape.y[:-2].max())
    return float(shape.y[-2:].min()) - before >= float(shape.y[-1]) - max(before, float(shape.y[-2]))


def whole(curve: Curve) -> Steps | None:
    """All judged points."""
    return _to_the_end(curve, lambda shape: 0)


def _to_the_end(curve: Curve, first: Callable[[Shape], int]) -> Steps | None:
    if (shape := curve.shape) is None:
        return None
    return int(shape.steps[min(first(shape), shape.points - 1)]), int(shape.steps[-1])


# Where the measures of a rule speak of several, the one that says most of the moment counts.
_IN_ORDER: tuple[Span, ...] = (
    collapse,
    nonfinite,
    last_points,
    early_spikes,
    late_spikes,
    loss_burst,
    loss_climb,
    rise,
    climb,
    fall,
    whole,
)


def first_span(spans: Collection[Span], curve: Curve) -> Steps:
    """The steps of the first of these spans, in that order, that the curve has; all judged points without one."""
    found = (span(curve) for span in _IN_ORDER if span in spans or span is whole)
    return next((steps for steps in found if steps is not None), (None, None))
