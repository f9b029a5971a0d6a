"""Fills the templates of messages and actions, and with what."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping

import numpy as np

from gradtrend.detect.curves.failure import failed_at, rows_before_failure
from gradtrend.detect.curves.levels import median
from gradtrend.detect.curves.run import Curve, RunCurves
from gradtrend.detect.curves.series import Series
from gradtrend.detect.rules.circumstances import lr_at, moment_of
from gradtrend.model.runlog import Note

_MOST_TERMS = 3
# What only a replay knows.
_REPLAY_NAMES = frozenset(
    ["cured_module", "dtype", "explicit_half", "guard", "needed", "rounded", "stable_precision", "stable_setting",
     "too_small"]
)  # fmt: skip
TEMPLATE_NAMES = _REPLAY_NAMES | frozenset(
    {
        "metric", "layer", "points", "first", "last", "onset", "baseline", "end", "peak", "decades", "run", "note",
        "details", "lr", "lr_peak", "warmup_end", "precision", "clip", "batch_size", "accumulation", "nonfinite_step",
        "grad_step", "loss_step", "loss_metric", "loss_before", "loss_after", "capture", "capture_step", "module",
        "report_step", "spike_step", "spike_end", "spike_peak", "late_spike_step", "late_spike_end", "late_spike_peak",
        "risen_to", "counted", "terms", "exploding_term", "times", "loss_flat", "loss_first", "loss_best", "loss_end",
        "how_long", "how_soon",
    }
)  # fmt: skip


# What one value that is not finite says, and what several do.
_ONE_LEFT, _FOR_GOOD = "and nothing finite is logged after it", "without coming back"
# A log without steps counts its rows: `step {onset}` is then a row.
_STEP = re.compile(r"\bstep(?=s? \{)")


def fill(template: str, values: Mapping[str, object]) -> str | None:
    """The template with its values, numbers to three significant digits; None where a value is not known."""
    if values.get("counted") == "row":
        template = _STEP.sub("row", template)
    shown: dict[str, str] = {}
    for _, name, _, _ in string.Formatter().parse(template):
        if name is None:
            continue
        value = values.get(name)
        if value is None:
            return None
        shown[name] = show(value)
    return template.format(**shown)


def show(value: object) -> str:
    """A number as a person writes it: three significant digits, integers whole."""
    if isinstance(value, float):
        if value != 0 and not 1e-3 <= abs(value) < 1e5:
            return f"{value:.2e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)


def template_values(curve: Curve, note: Note | None = None) -> dict[str, object]:
    """Values for message and action templates; a value that is not known is None."""
    run, shape, series = curve.run, curve.shape, curve.series
    step = moment_of(curve)
    settings, state = run.log.settings, run.nonfinite
    captures = [c for c in run.log.captures if c.step is not None]
    report = next((r for r in run.log.overflow_reports if r.detected), None)
    values: dict[str, object] = dict.fromkeys(TEMPLATE_NAMES)
    values["exploding_term"] = next(iter(run.exploding_terms), None)
    values["terms"] = ", ".join(run.bad_terms[:_MOST_TERMS]) or None
    values |= {
        "run": run.log.run,
        "counted": "row" if any(n.kind == "no-steps" for n in run.log.notes) else "step",
        "metric": series.metric if series is not None else None,
        "layer": series.layer if series is not None else None,
        "onset": step,
        "lr": lr_at(curve, step) or None,
        "lr_peak": None if run.lr is None or not run.lr.finite.any() else float(run.lr.finite_values.max()) or None,
        "warmup_end": run.warmup_end,
        "precision": settings.precision,
        "clip": settings.gradient_clip,
        "batch_size": settings.batch_size,
        "accumulation": settings.accumulation or 1,
        "nonfinite_step": state.collapse_step,
        "how_long": _ONE_LEFT if state.collapse_points <= 1 else _FOR_GOOD,
        "how_soon": _how_soon(run),
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
    if (seen := curve.divergence) is not None:
        values |= {"loss_first": seen.first, "loss_best": seen.best, "loss_end": seen.end}
    if shape is not None:
        values |= _shape_values(curve)
    return values


def _how_soon(run: RunCurves) -> str | None:
    """When norm or loss fails, in healthy rows; None where neither does."""
    if failed_at(run) is None:
        return None
    rows = rows_before_failure(run)
    return f"after {rows} healthy row{'s' if rows > 1 else ''}" if rows else "from the first row on"


def _ends_on_zero(curve: Curve) -> bool:
    """Whether the last values are exact zeros, for which a shape has a stand-in."""
    return curve.series is not None and not curve.series.finite_values[-3:].any()


def _loss_when_low(curve: Curve, loss: Series) -> float | None:
    """The loss when the norm had done half of its fall, or at the start where it hardly fell."""
    shape = curve.shape
    assert shape is not None
    fell = shape.fall.decades > 1 and shape.fall.held_from < shape.points
    values = loss.between(*curve.since(shape.fall.held_from if fell else 0))
    values = values[np.isfinite(values)]
    return median(values) + 0.0 if len(values) else None  # + 0.0: no -0


def _shape_values(curve: Curve) -> dict[str, object]:
    shape = curve.shape
    assert shape is not None
    rising = shape.larger is shape.rise
    values: dict[str, object] = {
        "points": shape.points,
        "first": int(shape.steps[0]),
        "last": int(shape.steps[-1]),
        "baseline": 10 ** (shape.baseline if rising else shape.highest),
        "end": 0.0 if _ends_on_zero(curve) else 10**shape.end,
        "peak": float(10 ** shape.y.max()),
        "decades": shape.larger.decades,
        "risen_to": 10 ** (shape.baseline + max(0.0, shape.rise.decades)),
    }
    for kind, spikes in (("", curve.early_spikes), ("late_", curve.late_spikes)):
        if spikes:
            highest = max(spikes, key=lambda s: s.decades)
            values |= {
                f"{kind}spike_step": int(shape.steps[highest.first]),
                f"{kind}spike_end": int(shape.steps[highest.last]),
                f"{kind}spike_peak": float(10 ** shape.y[highest.peak]),
            }
    loss = curve.run.loss
    if loss is not None and loss.finite.any():
        finite = loss.values[loss.finite]
        values |= {"loss_before": median(finite[:3]), "loss_after": median(finite[-3:])}
        values["loss_flat"] = _loss_when_low(curve, loss)
    return values
