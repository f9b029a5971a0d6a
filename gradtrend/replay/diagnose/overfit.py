"""Whether a batch can be learned by heart: a copy of the model, trained on it alone."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import torch

from gradtrend.model.diagnosis import Fit, Overfit
from gradtrend.replay.subject.failure import named

RATE = 1e-3  # Adam's own (Kingma and Ba 2015), right within a factor of some ten for most networks
# Of the first loss. In 50 steps at this rate, 32 sound networks at initialisation lost 0.028 (an autoencoder of noise),
# 0.10 (LSTM), 0.15 (a CNN without norm) or more, half of them over 0.85; one whose graph is cut loses nothing.
_LEARNED = 0.5
_FALLS = 0.01

_MEASURED_IN = 50
# Adam divides by the root of squares, which float16 loses below 2.4e-4; its usual 1e-8 is zero there.
_EPSILON, _EPSILON_IN_HALF = 1e-8, 1e-4

LossOf = Callable[[torch.nn.Module], torch.Tensor]


def copy_of(model: torch.nn.Module) -> torch.nn.Module | str:
    """A copy, or why there can be none. Made before the model has run: what it keeps of that may not be copied."""
    try:
        return copy.deepcopy(model)
    except Exception as error:  # a lock, a file, a tensor of a graph as an attribute
        return f"the model cannot be copied ({named(error)})"


def overfit(twin: torch.nn.Module | str, loss_of: LossOf, steps: int) -> Overfit:
    """`steps` steps of Adam on a copy of the model; `loss_of` gives the loss of a model for the batch."""
    if isinstance(twin, str):
        return Overfit(Fit.NOT_TRIED, 0, RATE, problem=twin)
    trained = [parameter for parameter in twin.parameters() if parameter.requires_grad]
    if not trained:
        return Overfit(Fit.NOT_TRIED, 0, RATE, problem="no parameter is trained")
    half = any(parameter.dtype is torch.float16 for parameter in trained)
    optimizer = torch.optim.Adam(trained, lr=RATE, eps=_EPSILON_IN_HALF if half else _EPSILON)
    losses: list[float] = []
    try:
        for _ in range(steps + 1):  # the last is looked at alone
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(twin)
            losses.append(loss.item())
            if not math.isfinite(losses[-1]) or len(losses) > steps:
                break
            loss.backward()
            if all(parameter.grad is None for parameter in trained):
                problem = "the loss does not come from the model that the step was given"
                return Overfit(Fit.NOT_TRIED, 0, RATE, losses[0], losses[-1], problem)
            optimizer.step()
    except Exception as error:  # the user's code, or Adam's for types that it cannot step
        return Overfit(Fit.NOT_TRIED, max(len(losses) - 1, 0), RATE, problem=named(error))
    return Overfit(_state(losses, steps), len(losses) - 1, RATE, losses[0], losses[-1])


def _state(losses: list[float], steps: int) -> Fit:
    if not all(map(math.isfinite, losses)):
        return Fit.NONFINITE
    first, last = losses[0], min(losses[-3:])  # dropout and the like make single losses jump
    drop = (first - last) / abs(first) if first else 0.0
    if drop >= _LEARNED:
        return Fit.LEARNED
    return Fit.FALLS if drop >= _FALLS * min(1.0, steps / _MEASURED_IN) else Fit.STANDS
