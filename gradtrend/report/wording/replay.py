"""A replay's verdict in words."""

from __future__ import annotations

from gradtrend.model.replay import Outcome, Replay, ReplayCause

_CAUSES = {
    ReplayCause.DATA: "the data",
    ReplayCause.PRECISION_RANGE: "the precision's range",
    ReplayCause.LOSS_SCALE: "the loss scale",
    ReplayCause.FORWARD_OPERATOR: "an operator in the forward pass",
    ReplayCause.BACKWARD_OPERATOR: "an operator in the backward pass",
    ReplayCause.BAD_STATE: "a bad state of the model",
    ReplayCause.OTHER_RANK: "another rank",
    ReplayCause.EXPLOSION: "the gradient explosion is real",
    ReplayCause.NORM_OVERFLOW: "the norm overflows over finite gradients",
}
_HIDDEN = "a value that is masked in the forward pass spoils the gradient"
_OUTCOMES = {
    Outcome.CONFIRMED: "confirmed",
    Outcome.FLAKY: "flaky (the same step gives different results)",
    Outcome.NOT_REPRODUCED: "not reproduced",
    Outcome.CANNOT_RUN: "cannot run (nothing is known about the step)",
    Outcome.INSPECTED: "inspected only (nothing was run)",
}


def replay_headline(replay: Replay) -> str:
    """`confirmed: the precision's range, in model.conv1 (float16 on cpu)`."""
    text = _OUTCOMES[replay.outcome]
    if replay.cause is not None:
        hidden = replay.cause is ReplayCause.BACKWARD_OPERATOR and replay.origin and replay.origin.phase == "forward"
        text += f": {_HIDDEN if hidden else _CAUSES[replay.cause]}"
    if replay.origin is not None and replay.origin.module:
        text += f", in {replay.origin.module}"
    return f"{text} ({replay.precision} on {replay.device})" if replay.precision else text
