"""What is known of a run beside its curves: what actions are ordered by, and what messages are filled with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gradtrend.detect.curves.case import Case
from gradtrend.detect.curves.levels import median
from gradtrend.detect.curves.series import Series
from gradtrend.detect.curves.warmup import SWITCH_FACTOR
from gradtrend.model.runlog import Note

# A log that begins later than this is an excerpt, and its first step says nothing of the run's.
_FIRST_STEPS = 10
# Samples an optimizer step below which one outlier makes a tenth of the gradient.
_SMALL_BATCH = 8


def change_step(case: Case) -> int | None:
    """The step where the change of this case began: the rise, the fall, a spike, or the first non-finite value."""
    shape = case.shape
    if shape is not None:
        if case.early_spikes or case.late_spikes:
            spike = (case.early_spikes or case.late_spikes)[0]
            if shape.larger.decades < spike.decades:
                return int(shape.steps[spike.first])
        change = shape.larger
        if change.decades > 0 and change.onset < shape.points:
            return int(shape.steps[change.onset])
    return case.run.nonfinite.collapse_step


def lr_at(case: Case, step: int | None) -> float | None:
    """The logged learning rate at or just before a step; the configured one where none is logged."""
    lr = case.run.lr
    if lr is None or step is None or not len(lr):
        return case.run.log.settings.learning_rate if lr is None else None
    index = max(0, int(np.searchsorted(lr.steps, step, side="right")) - 1)
    value = float(lr.values[index])
    return value if np.isfinite(value) else None


def _moment(case: Case) -> int | None:
    step = change_step(case)
    return step if step is not None else case.run.nonfinite.grad_first


def lr_warming_up(case: Case) -> bool | None:
    """Whether the learning rate was still climbing when the change began."""
    step = _moment(case)
    if case.run.lr is None or step is None:
        return None
    return case.run.warmup_end is not None and step <= case.run.warmup_end


def lr_just_switched(case: Case) -> bool | None:
    """Whether the learning rate had just jumped when the change began."""
    lr, step = case.run.lr, _moment(case)
    if lr is None or step is None or len(lr) < 4:
        return None
    index = int(np.searchsorted(lr.steps, step, side="right"))
    near = lr.values[max(0, index - 4) : index + 1]
    near = near[np.isfinite(near) & (near > 0)]
    return bool(len(near) > 1 and (near[1:] / near[:-1]).max() >= SWITCH_FACTOR) and not lr_warming_up(case)


def low_precision(case: Case) -> bool | None:
    """Whether the run used float16."""
    return case.run.log.settings.in_float16


def clipping_on(case: Case) -> bool | None:
    """Whether the gradient norm was clipped."""
    clip = case.run.log.settings.gradient_clip
    return None if clip is None else clip > 0


def _clips_above_baseline(case: Case) -> bool:
    """Whether the norm may rise above its baseline before it is clipped."""
    clip, shape = case.run.log.settings.gradient_clip, case.shape
    return clip is not None and shape is not None and clip > 10**shape.baseline


def clipping_off(case: Case) -> bool | None:
    """Whether it is known not to have been."""
    on = clipping_on(case)
    return None if on is None else not on


def has_capture(case: Case) -> bool:
    """Whether a captured step lies in the run folder."""
    return bool(case.run.log.captures)


def has_overflow_report(case: Case) -> bool:
    """Whether an underflow/overflow report names a module."""
    return any(report.detected and report.module for report in case.run.log.overflow_reports)


def fails_at_once(case: Case) -> bool:
    """Whether it became non-finite at the first logged step, so that no checkpoint lies before it."""
    return _at_start(case, case.run.nonfinite.collapse_step)


def rises_at_once(case: Case) -> bool:
    """Whether the change began at the first logged step."""
    return _at_start(case, _moment(case))


def small_batch(case: Case) -> bool | None:
    """Whether an optimizer step sees few samples: batch size times accumulation."""
    settings = case.run.log.settings
    if settings.batch_size is None:
        return None
    return settings.batch_size * (settings.accumulation or 1) <= _SMALL_BATCH


def _at_start(case: Case, step: int | None) -> bool:
    first = min((int(norm.steps[0]) for norm in case.run.norms if len(norm)), default=0)
    return step is not None and step <= first <= _FIRST_STEPS


# Evidence: an action that rests on it comes first.
EVIDENCE: Mapping[str, Callable[[Case], bool | None]] = {
    "lr_warming_up": lr_warming_up,
    "lr_just_switched": lr_just_switched,
    "low_precision": low_precision,
    "clipping_off": clipping_off,
    "has_capture": has_capture,
    "has_overflow_report": has_overflow_report,
}
# Circumstances: an action that they do not fit is dropped, one that they fit keeps its place.
CIRCUMSTANCES: Mapping[str, Callable[[Case], bool | None]] = {
    "clips_above_baseline": _clips_above_baseline,
    "clipping_unknown": lambda case: clipping_on(case) is None,
    "precision_unknown": lambda case: low_precision(case) is None,
    "small_batch": small_batch,
    "no_capture": lambda case: not has_capture(case),
    "no_overflow_report": lambda case: not has_overflow_report(case) and not has_capture(case),
    "no_lr": lambda case: case.run.lr is None,
    "no_layers": lambda case: not case.run.layers,
    "rises_at_once": rises_at_once,
    "rises_later": lambda case: not rises_at_once(case),
    "fails_at_once": fails_at_once,
    "fails_later": lambda case: not fails_at_once(case),
}
FACTS: Mapping[str, Callable[[Case], bool | None]] = {**EVIDENCE, **CIRCUMSTANCES}

TEMPLATE_NAMES = frozenset(
    {
        "metric", "layer", "points", "first", "last", "onset", "baseline", "end", "peak", "decades", "run", "note",
        "details", "lr", "lr_peak", "warmup_end", "precision", "clip", "batch_size", "accumulation", "nonfinite_step",
        "grad_step", "loss_step", "loss_metric", "loss_before", "loss_after", "capture", "capture_step", "module",
        "report_step", "spike_step", "spike_end", "spike_peak", "late_spike_step", "late_spike_end", "late_spike_peak",
        "risen_to", "loss_flat",
    }
)  # fmt: skip


def template_values(case: Case, note: Note | None = None) -> dict[str, object]:
    """Values for message and action templates; a value that is not known is None."""
    run, shape, series = case.run, case.shape, case.series
    step = _moment(case)
    settings, state = run.log.settings, run.nonfinite
    captures = [c for c in run.log.captures if c.step is not None]
    report = next((r for r in run.log.overflow_reports if r.detected), None)
    values: dict[str, object] = dict.fromkeys(TEMPLATE_NAMES)
    values |= {
        "run": run.log.run,
        "metric": series.metric if series is not None else None,
        "layer": series.layer if series is not None else None,
        "onset": step,
        "lr": lr_at(case, step),
        "lr_peak": None if run.lr is None or not run.lr.finite.any() else float(run.lr.values[run.lr.finite].max()),
        "warmup_end": run.warmup_end,
        "precision": settings.precision,
        "clip": settings.gradient_clip,
        "batch_size": settings.batch_size,
        "accumulation": settings.accumulation or 1,
        "nonfinite_step": state.collapse_step,
        "grad_step": state.grad_first,
        "loss_step": state.loss_first,
        "loss_metric": run.loss.metric if run.loss is not None else None,
        "capture": captures[0].path if captures else None,
        "capture_step": captures[0].step if captures else None,
        "module": report.module if report else None,
        "report_step": report.batch if report else None,
        "note": note.message if note else None,
        "details": note.details if note else None,
    }
    if shape is not None and series is not None:
        values |= _shape_values(case)
    return values


def _loss_when_low(case: Case, loss: Series) -> float | None:
    """The loss when the norm had done half of its fall, or at the start where it hardly fell."""
    shape = case.shape
    assert shape is not None
    fell = shape.fall.decades > 1 and shape.fall.held_from < shape.points
    values = loss.between(*case.since(shape.fall.held_from if fell else 0))
    values = values[np.isfinite(values)]
    return median(values) + 0.0 if len(values) else None  # + 0.0: no -0


def _shape_values(case: Case) -> dict[str, object]:
    shape = case.shape
    assert shape is not None
    rising = shape.larger is shape.rise
    values: dict[str, object] = {
        "points": shape.points,
        "first": int(shape.steps[0]),
        "last": int(shape.steps[-1]),
        "baseline": 10 ** (shape.baseline if rising else shape.highest),
        "end": 10**shape.end,
        "peak": float(10 ** shape.y.max()),
        "decades": shape.larger.decades,
        "risen_to": 10 ** (shape.baseline + max(0.0, shape.rise.decades)),
    }
    for kind, spikes in (("", case.early_spikes), ("late_", case.late_spikes)):
        if spikes:
            highest = max(spikes, key=lambda s: s.decades)
            values |= {
                f"{kind}spike_step": int(shape.steps[highest.first]),
                f"{kind}spike_end": int(shape.steps[highest.last]),
                f"{kind}spike_peak": float(10 ** shape.y[highest.peak]),
            }
    loss = case.run.loss
    if loss is not None and loss.finite.any():
        finite = loss.values[loss.finite]
        values |= {"loss_before": median(finite[:3]), "loss_after": median(finite[-3:])}
        values["loss_flat"] = _loss_when_low(case, loss)
    return values
