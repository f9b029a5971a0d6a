"""A live model and its batch as the subject of a step, which leaves both as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from gradtrend.errors import GradtrendError, InputError, ReplayError
from gradtrend.recording.random_states import present_states
from gradtrend.recording.trees import map_tensors, named_leaves
from gradtrend.replay.diagnose.untouched import untouched
from gradtrend.replay.subject.environment import choose_device, eager
from gradtrend.replay.subject.failure import named
from gradtrend.replay.subject.loss import loss_function
from gradtrend.replay.subject.outside import present_outside
from gradtrend.replay.subject.subject import Subject

_NO_STEP = "Give step=..., a function of the model and the batch that gives the loss as a 0-d tensor."
_OWN_CODE = "The message is from the model's own code, or from the step's."
_NO_BACKWARD = "The step gives the loss alone: leave backward() and the optimizer out of it."
_PRECISION = {torch.float64: "float64", torch.bfloat16: "bfloat16-true", torch.float16: "float16-true"}


@dataclass(frozen=True, slots=True)
class Live:
    """The subject, the precision that its step runs in, and the same loss for any copy of its model."""

    subject: Subject
    precision: str
    loss_of: Callable[[torch.nn.Module], torch.Tensor]


@contextmanager
def live_step(model: Any, batch: Any, step: Any, device: str | None) -> Iterator[Live]:
    """The step of a live model, ready to be run; afterwards the model and the generators are as before.

    Raises `InputError` for what is no model or a batch without samples, `ReplayError` for what cannot be run.
    """
    check(model, batch, step)
    place = _device_of(model) if device is None else choose_device(device)
    with untouched(model) as put_back, torch.inference_mode(False), torch.enable_grad(), eager():
        precision = _precision_of(model, place)
        if device is not None:
            model.to(place)
        own = map_tensors(_as_dict(batch), lambda t: t.detach().to(place).requires_grad_(t.requires_grad))
        with _others_kept(model, loss_function(model, step, 0, place)) as compute_loss:
            subject = Subject(
                model=model,
                compute_loss=compute_loss,
                reload=put_back,
                batches=[own],
                device=place,
                random_states=present_states(place),
                loss_divisor=1.0,
                modes={name: module.training for name, module in model.named_modules()},
                outside=present_outside(model, taken="before"),
            )
            subject.remember()
            yield Live(subject, precision, lambda twin: _loss_of(twin, own, step, place))


def _loss_of(model: torch.nn.Module, batch: Any, step: Any, device: torch.device) -> torch.Tensor:
    return loss_function(model, step, 0, device)(map_tensors(batch, torch.clone), 0)


@contextmanager
def errors_said(step: Any) -> Iterator[None]:
    """What the user's code raises, as a `ReplayError`."""
    try:
        yield
    except GradtrendError as error:
        if step is None and isinstance(error, ReplayError):
            raise ReplayError(error.message, _NO_STEP) from error
        raise
    except Exception as error:
        hint = _NO_STEP if step is None else _NO_BACKWARD if "backward through the graph" in str(error) else _OWN_CODE
        raise ReplayError(f"running the step failed: {named(error)}", hint) from error


def check(model: Any, batch: Any, step: Any) -> None:
    """Raise `InputError` or `ReplayError` for what no step can be made of."""
    if not isinstance(model, torch.nn.Module):
        raise InputError(f"model is a {type(model).__name__}, not a torch.nn.Module")
    if step is not None and not callable(step):
        raise InputError(f"step is a {type(step).__name__}, which cannot be called", _NO_STEP)
    if _is_empty(batch):
        raise InputError("the batch holds no samples", "Give a batch as the model is trained on it.")
    if any(isinstance(module, torch.jit.ScriptModule) for module in model.modules()):
        raise ReplayError("the model is compiled by torch.jit: its modules cannot be watched", "Give the model itself.")
    lazy = [name for name, p in model.named_parameters() if torch.nn.parameter.is_lazy(p)]
    if lazy:
        raise ReplayError(f"{lazy[0]} has no shape yet", "Call the model once: its lazy layers get their shapes then.")


def _is_empty(batch: Any) -> bool:
    if isinstance(batch, list | tuple | Mapping | str) and not batch:
        return True
    tensors = [leaf for _, leaf in named_leaves(_as_dict(batch)) if isinstance(leaf, torch.Tensor)]
    return bool(tensors) and not any(tensor.numel() for tensor in tensors)


def _as_dict(batch: Any) -> Any:
    """Mappings of other kinds (a tokenizer's) are given as keywords as well."""
    return dict(batch) if isinstance(batch, Mapping) and not isinstance(batch, dict) else batch


def _device_of(model: torch.nn.Module) -> torch.device:
    tensor = next(iter([*model.parameters(), *model.buffers()]), None)
    return torch.device("cpu") if tensor is None else tensor.device


def _precision_of(model: torch.nn.Module, device: torch.device) -> str:
    """The caller's autocast, else the type of most parameters."""
    if torch.is_autocast_enabled(device.type):
        return "float16" if torch.get_autocast_dtype(device.type) is torch.float16 else "bfloat16"
    sizes: dict[torch.dtype, int] = {}
    for parameter in model.parameters():
        sizes[parameter.dtype] = sizes.get(parameter.dtype, 0) + parameter.numel()
    return _PRECISION.get(max(sizes, key=lambda dtype: sizes[dtype], default=torch.float32), "float32")


@contextmanager
def _others_kept(
    model: torch.nn.Module, compute_loss: Callable[[Any, int], Any]
) -> Iterator[Callable[[Any, int], Any]]:
    """The same loss; the gradients of what it depends on beside the model (a learned temperature) are put back."""
    own = {id(parameter) for parameter in model.parameters()}
    kept: dict[int, tuple[torch.Tensor, torch.Tensor | None]] = {}

    def watched(batch: Any, index: int) -> Any:
        loss = compute_loss(batch, index)
        for leaf in _leaves(loss):
            if id(leaf) not in own and id(leaf) not in kept:
                kept[id(leaf)] = (leaf, None if leaf.grad is None else leaf.grad.clone())
        return loss

    try:
        yield watched
    finally:
        for leaf, gradient in kept.values():
            leaf.grad = gradient


def _leaves(loss: torch.Tensor) -> list[torch.Tensor]:
    """The tensors into whose gradient a backward pass would add."""
    pending, seen, leaves = [loss.grad_fn], set(), []
    while pending:
        node: Any = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        pending += [following for following, _ in node.next_functions]
    return leaves
