"""From what the runs showed to a verdict with its reasons."""

from __future__ import annotations

import math

from gradtrend.model.replay import LayerGradient, Outcome, Replay, ReplayCause
from gradtrend.replay.conclude.facts import Facts
from gradtrend.replay.conclude.reasons import reasons
from gradtrend.replay.search.sweep import SPREAD_LIMIT

_HALF = ("float16", "bfloat16")


def judge(facts: Facts, layers: tuple[LayerGradient, ...], notes: tuple[str, ...]) -> Replay:
    """The verdict of one capture; ranks are joined afterwards."""
    outcome = _outcome(facts)
    cause = _cause(facts) if outcome is Outcome.CONFIRMED else None
    return Replay(
        inspection=facts.inspection,
        outcome=outcome,
        cause=cause,
        device=facts.device,
        precision=facts.precision,
        precision_known=facts.known,
        repeats=facts.repeats,
        sweep=facts.rows,
        origin=facts.origin,
        frames=facts.frames,
        bad_parameters=facts.first.bad_parameters,
        blame=facts.blame,
        swap=facts.swap,
        layers=layers,
        usual_norm=facts.usual_norm,
        shares=facts.shares,
        why=reasons(facts, outcome, cause),
        notes=(*facts.inspection.notes, *notes),
    )


def _outcome(facts: Facts) -> Outcome:
    repeats = facts.repeats
    if 0 < repeats.failures < repeats.runs or repeats.spread > SPREAD_LIMIT:
        return Outcome.FLAKY
    if repeats.failures:
        return Outcome.CONFIRMED
    return Outcome.CONFIRMED if facts.norm_overflows or facts.explodes else Outcome.NOT_REPRODUCED


def _cause(facts: Facts) -> ReplayCause:
    """The first that holds, from what is certain (the value was there before) to what is left."""
    if not facts.repeats.failures:
        return ReplayCause.NORM_OVERFLOW if facts.norm_overflows else ReplayCause.EXPLOSION
    origin = facts.origin
    if origin is not None and origin.source == "input":
        return ReplayCause.DATA
    if origin is not None and origin.source in ("parameter", "buffer"):
        return ReplayCause.BAD_STATE
    if facts.precision == "float16-scaled" and facts.finite_in("float16"):
        return ReplayCause.LOSS_SCALE
    if _only_in_low_precision(facts) or (origin is not None and origin.dtype in _HALF and origin.exceeds_range):
        return ReplayCause.PRECISION_RANGE
    if math.isfinite(facts.first.loss):  # also where a value that `where` hid in the forward pass spoils the gradient
        return ReplayCause.BACKWARD_OPERATOR
    if facts.blame is not None and facts.blame.samples and facts.blame.cured:
        return ReplayCause.DATA
    if origin is not None and origin.exceeds_range:
        return ReplayCause.PRECISION_RANGE
    return ReplayCause.FORWARD_OPERATOR


def _only_in_low_precision(facts: Facts) -> bool:
    return not facts.precision.startswith("float32") and facts.finite_in("float32") is True
