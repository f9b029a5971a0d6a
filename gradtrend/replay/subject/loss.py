"""How the loss of a microbatch is made: by the capture's own step function, a `training_step`, or the model itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from gradtrend.errors import ReplayError
from gradtrend.replay.subject.revive import parameters_of

_NEEDS_STEP = (
    "Let the factory give (model, step), where step(model, microbatch) gives the loss, a tensor of one number."
)
_Step = Callable[[Any, int], Any]  # of a microbatch and its number


class _SingleProcess:
    """What a LightlyTrain step may ask of the Fabric it is given, for one process."""

    world_size = 1
    global_rank = 0
    local_rank = 0
    is_global_zero = True

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def __getattr__(self, name: str) -> Any:
        raise ReplayError(f"the model's training_step uses fabric.{name}, which a replay does not offer")


def loss_function(
    model: torch.nn.Module, step: Any, number: int, device: torch.device
) -> Callable[[Any, int], torch.Tensor]:
    """What gives the loss of a microbatch. `step` is the factory's own function, or None; `number` the training step's.

    It raises `ReplayError` where no scalar comes of it.
    """
    call = _caller(model, step, number, device)

    def compute_loss(batch: Any, index: int) -> torch.Tensor:
        return _loss_in(call(batch, index))

    return compute_loss


def _caller(model: torch.nn.Module, step: Any, number: int, device: torch.device) -> _Step:
    if step is not None:
        return lambda batch, index: step(model, batch)
    training_step: Any = getattr(model, "training_step", None)
    if training_step is None:
        return lambda batch, index: model(**batch) if isinstance(batch, dict) else model(batch)
    parameters = parameters_of(training_step)
    if "fabric" in parameters:
        fabric = _SingleProcess(device)
        return lambda batch, index: training_step(fabric=fabric, batch=batch, step=number)
    if len(parameters) == 1:
        return lambda batch, index: training_step(batch)
    return training_step  # type: ignore[no-any-return]


def _loss_in(result: Any) -> torch.Tensor:
    """The loss in what a step gives: a tensor, something with `loss`, or the first of a tuple."""
    if isinstance(result, Mapping):
        result = result.get("loss")
    elif hasattr(result, "loss"):
        result = result.loss
    elif isinstance(result, list | tuple) and result:
        result = result[0]
    if not isinstance(result, torch.Tensor) or result.numel() != 1:
        raise ReplayError(f"the step gave no scalar loss but {type(result).__name__}", _NEEDS_STEP)
    return result.reshape(())
