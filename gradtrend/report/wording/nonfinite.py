"""The tie between gradient norm and loss, in words."""

from __future__ import annotations

from gradtrend.model.report import NonFinite, RunReport
from gradtrend.model.words import Cause, Order, Role, Verdict
from gradtrend.report.wording.numbers import plural

_ORDERS = {
    Order.GRADIENT_FIRST: "the norm first",
    Order.LOSS_FIRST: "the loss first",
    Order.SAME_STEP: "both at the same step",
    Order.GRADIENT_ONLY: "the logged loss stays finite",
    Order.LOSS_ONLY: "the gradient norm stays finite",
}
_CAUSES = {
    Cause.AFTER_EXPLOSION: "it follows the rise of the gradient norm",
    Cause.GRADIENT_FIRST: "the backward pass overflowed, or the loss mean left the NaN part out",
    Cause.LOSS_FIRST: "the forward pass: an overflow, bad data, or a log or root of 0",
    Cause.SAME_STEP: "no rise before it: an overflow in the forward pass, bad data, or a log or root of 0",
}
# A loss scaler makes the scaled gradients overflow, never the loss.
_SCALER = "; in mixed precision that is the loss scaler at work"
# Without a logged norm nothing is known of it.
_NO_NORM = " No gradient norm is logged: forward and backward pass cannot be told apart."


def nonfinite_text(found: NonFinite, unit: str = "step", scaled: bool = True) -> str:
    """One or two sentences: where NaN/inf begin, in which order, how long after the onset, and why; none where no step
    is known. `scaled` says that a loss scaler may be at work (`may_be_scaled`).
    """
    places = (
        _place("gradient norm", found.grad_first_step, found.grad_count, unit),
        _place("loss", found.loss_first_step, found.loss_count, unit),
    )
    parts = [place for place in places if place]
    if found.cause is Cause.MASKED:
        parts.append("the loss reads exactly 0 there, which hides the failure")
    elif found.order is not None:
        parts.append(_ORDERS[found.order])
    if found.forward_first_step is not None:
        parts.append(f"forward pass from batch {found.forward_first_step}")
    if found.lead_steps is not None and found.lead_steps > 0:
        parts.append(f"{plural(found.lead_steps, unit)} after the rise began")
    if not parts:
        return ""
    text = f"NaN/inf: {', '.join(parts)}"
    if found.cause is Cause.RECOVERED:
        return f"{text}; the values come back{_SCALER if scaled and found.order is Order.GRADIENT_ONLY else ''}."
    if found.cause is None or found.cause is Cause.MASKED:
        return f"{text}.{_NO_NORM if found.order is None and found.loss_first_step is not None else ''}"
    return f"{text}. Cause: {_CAUSES[found.cause]}."


def may_be_scaled(run: RunReport) -> bool:
    """Whether a loss scaler may be what makes a run's norms non-finite: it is known of, or nothing else explains them,
    as a run that explodes or diverges does.
    """
    known = bool(run.settings.in_float16) or any(one.role is Role.LOSS_SCALE for one in run.series)
    return known or run.verdict not in (Verdict.EXPLODING, Verdict.DIVERGING)


def _place(what: str, step: int | None, count: int, unit: str) -> str:
    if step is None:
        return ""
    return f"{what} from {unit} {step}" + (f" ({plural(count, 'point')})" if count else "")
