"""What is known of a run beside its curves: what a rule's next actions are ordered by and depend on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.terms import regresses_boxes
from gradtrend.detect.curves.warmup import SWITCH_FACTOR
from gradtrend.detect.frameworks import framework_of
from gradtrend.model.runlog import RunLog

# A log that begins later than this is an excerpt, and its first step says nothing of the run's.
_FIRST_STEPS = 10
# Samples an optimizer step below which one outlier makes a tenth of the gradient.
_SMALL_BATCH = 8


def kinds_of(log: RunLog) -> frozenset[str]:
    """What kinds of network a log is of: its framework's, and detection where terms of boxes are logged."""
    kinds = framework_of(log.settings.framework).kinds
    return kinds | {"detection"} if regresses_boxes(log) else kinds


def _change_step(curve: Curve) -> int | None:
    """The step where the change of this curve began: the rise, the fall, a spike, or the first non-finite value."""
    shape = curve.shape
    if shape is not None:
        if curve.early_spikes or curve.late_spikes:
            spike = (curve.early_spikes or curve.late_spikes)[0]
            if shape.larger.decades < spike.decades:
                return int(shape.steps[spike.first])
        change = shape.larger
        if change.decades > 0 and change.onset < shape.points:
            return int(shape.steps[change.onset])
    return curve.run.nonfinite.collapse_step


def lr_at(curve: Curve, step: int | None) -> float | None:
    """The logged learning rate at or just before a step; the configured one where none is logged."""
    lr = curve.run.lr
    if lr is None or step is None:
        return curve.run.log.settings.learning_rate if lr is None else None
    index = max(0, int(np.searchsorted(lr.steps, step, side="right")) - 1)
    value = float(lr.values[index])
    return value if np.isfinite(value) else None


def moment_of(curve: Curve) -> int | None:
    """The step where the change began, or that of the first non-finite norm."""
    step = _change_step(curve)
    return step if step is not None else curve.run.nonfinite.grad_first


def _lr_warming_up(curve: Curve) -> bool | None:
    """Whether the learning rate was still climbing when the change began."""
    step = moment_of(curve)
    if curve.run.lr is None or step is None:
        return None
    return curve.run.warmup_end is not None and step <= curve.run.warmup_end


def _lr_just_switched(curve: Curve) -> bool | None:
    """Whether the learning rate had just jumped when the change began."""
    lr, step = curve.run.lr, moment_of(curve)
    if lr is None or step is None or len(lr) < 4:
        return None
    index = int(np.searchsorted(lr.steps, step, side="right"))
    near = lr.values[max(0, index - 4) : index + 1]
    near = near[np.isfinite(near) & (near > 0)]
    return bool(len(near) > 1 and (near[1:] / near[:-1]).max() >= SWITCH_FACTOR) and not _lr_warming_up(curve)


def _low_precision(curve: Curve) -> bool | None:
    """Whether the run used float16."""
    return curve.run.log.settings.in_float16


def _clipping_on(curve: Curve) -> bool | None:
    """Whether the gradient norm was clipped."""
    clip = curve.run.log.settings.gradient_clip
    return None if clip is None else clip > 0


def _clips_above_baseline(curve: Curve) -> bool:
    """Whether the norm may rise above its baseline before it is clipped."""
    clip, shape = curve.run.log.settings.gradient_clip, curve.shape
    return clip is not None and shape is not None and clip > 10**shape.baseline


def _clipping_off(curve: Curve) -> bool | None:
    """Whether it is known not to have been."""
    on = _clipping_on(curve)
    return None if on is None else not on


def _has_capture(curve: Curve) -> bool:
    """Whether a captured step lies in the run folder."""
    return bool(curve.run.log.captures)


def _has_overflow_report(curve: Curve) -> bool:
    """Whether an underflow/overflow report names a module."""
    return any(report.detected and report.module for report in curve.run.log.overflow_reports)


def _fails_at_once(curve: Curve) -> bool:
    """Whether it became non-finite at the first logged step, so that no checkpoint lies before it."""
    return _at_start(curve, curve.run.nonfinite.collapse_step)


def _rises_at_once(curve: Curve) -> bool:
    """Whether the change began at the first logged step."""
    return _at_start(curve, moment_of(curve))


def _climbs_at_end(curve: Curve) -> bool:
    """Whether the learning rate still climbs at the end of the log."""
    lr = curve.run.lr
    return lr is not None and len(lr) > 1 and curve.run.warmup_end is not None and curve.run.warmup_end >= lr.steps[-1]


def _small_batch(curve: Curve) -> bool | None:
    """Whether an optimizer step sees few samples: batch size times accumulation."""
    settings = curve.run.log.settings
    if settings.batch_size is None:
        return None
    return settings.batch_size * (settings.accumulation or 1) <= _SMALL_BATCH


def _at_start(curve: Curve, step: int | None) -> bool:
    first = min((int(norm.steps[0]) for norm in curve.run.norms), default=0)
    return step is not None and step <= first <= _FIRST_STEPS


# Evidence: an action that rests on it comes first.
EVIDENCE: Mapping[str, Callable[[Curve], bool | None]] = {
    "lr_warming_up": _lr_warming_up,
    "lr_just_switched": _lr_just_switched,
    "low_precision": _low_precision,
    "clipping_off": _clipping_off,
    "has_capture": _has_capture,
    "has_overflow_report": _has_overflow_report,
}
# Others: an action that they do not fit is dropped, one that they fit keeps its place.
_OTHERS: Mapping[str, Callable[[Curve], bool | None]] = {
    "clips_above_baseline": _clips_above_baseline,
    "clipping_unknown": lambda curve: _clipping_on(curve) is None,
    "precision_unknown": lambda curve: _low_precision(curve) is None,
    "small_batch": _small_batch,
    "loss_stays_finite": lambda curve: not curve.run.nonfinite.loss_count,
    "loss_fails": lambda curve: curve.run.nonfinite.loss_count > 0,
    "norm_rises": lambda curve: curve.shape is not None and curve.shape.larger is curve.shape.rise,
    "norm_falls": lambda curve: curve.shape is not None and curve.shape.larger is not curve.shape.rise,
    "lr_climbs_at_end": _climbs_at_end,
    "hides_nan": lambda curve: "transformer" in framework_of(curve.run.log.settings.framework).kinds,
    "nearest_neighbour": lambda curve: any("koleo" in name.lower() for name in curve.run.bad_terms),
    "no_capture": lambda curve: not _has_capture(curve),
    "no_overflow_report": lambda curve: not _has_overflow_report(curve) and not _has_capture(curve),
    "no_lr": lambda curve: curve.run.lr is None,
    "no_layers": lambda curve: not curve.run.layers,
    "one_row": lambda curve: max((len(one) for one in (*curve.run.norms, *curve.run.losses)), default=0) == 1,
    "rises_at_once": _rises_at_once,
    "rises_later": lambda curve: not _rises_at_once(curve),
    "fails_at_once": _fails_at_once,
    "fails_later": lambda curve: not _fails_at_once(curve),
}
CIRCUMSTANCES: Mapping[str, Callable[[Curve], bool | None]] = {**EVIDENCE, **_OTHERS}
