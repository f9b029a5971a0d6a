"""Sees one step: which modules run in which order, what they give, and which losses and activations are called.

Watched are modules by hooks, and torch's functions by a mode, so that `torch.relu(x)` in a `forward` is seen as well
as `nn.ReLU`, and a cross-entropy is known from its call and not guessed from the value of a loss.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradtrend.replay.diagnose.losses import LossCall, loss_call
from gradtrend.replay.diagnose.moments import sums_of
from gradtrend.replay.diagnose.units import Units, function_name, is_activation, seen_in

# After these a tensor's second dimension is its channels; after all others (linear, LayerNorm, attention) its last is.
_CHANNELS_FIRST = ("conv", "batchnorm", "instancenorm", "groupnorm")


@dataclass(slots=True)
class Output:
    """What one module, or a function called in it, gave in all its calls."""

    layer: str
    kind: str
    calls: int = 0
    sums: list[torch.Tensor] = field(default_factory=list)
    units: Units | None = None
    comparable: bool = True


@dataclass(slots=True)
class _Frame:
    """A module that is running. `alone`: no other began in it."""

    name: str
    alone: bool = True


class StepWatch(TorchFunctionMode):
    """Entered around a step; afterwards holds the modules in order, their calls and outputs, and the losses called."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.calls: dict[str, int] = {}  # in the order of the first call
        self.outputs: dict[tuple[str, str], Output] = {}
        self.losses: list[LossCall] = []
        self._modules = dict(model.named_modules())
        self._looking = False
        self._stack: list[_Frame] = []
        self._handles: list[Any] = []
        self._channels_first = True

    def __enter__(self) -> StepWatch:
        for name, module in self._modules.items():
            self._handles.append(module.register_forward_pre_hook(self._entering(name)))
            self._handles.append(module.register_forward_hook(self._leaving(name), always_call=True))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        for handle in self._handles:
            handle.remove()
        self._stack.clear()

    def _entering(self, name: str) -> Any:
        def enter(module: Any, args: Any) -> None:
            if not _is_run_again():
                for frame in self._stack[-1:]:
                    frame.alone = False
                self._stack.append(_Frame(name))
                self.calls[name] = self.calls.get(name, 0) + 1

        return enter

    def _leaving(self, name: str) -> Any:
        def leave(module: Any, args: Any, output: Any) -> None:
            if not self._stack or _is_run_again():
                return
            kind = type(module).__name__
            if self._stack.pop().alone:
                if next(module.parameters(recurse=False), None) is not None:
                    self._channels_first = kind.lower().startswith(_CHANNELS_FIRST)
                self._see(name, kind, output)

        return leave

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not self._looking and not _is_run_again():
            name = getattr(func, "__name__", "")
            call = loss_call(name, args, kwargs, result)
            if call is not None:
                self.losses.append(call)
            elif is_activation(name) and isinstance(result, torch.Tensor) and not self._in_activation():
                self._see(self._stack[-1].name if self._stack else "", function_name(name), result)
        return result

    def _in_activation(self) -> bool:
        """Whether a module that is an activation itself is running: its output is looked at as it ends."""
        if not self._stack:
            return False
        module = self._modules[self._stack[-1].name]
        return is_activation(type(module).__name__) and next(module.children(), None) is None

    def _see(self, layer: str, kind: str, output: Any) -> None:
        seen = self.outputs.setdefault((layer, kind), Output(layer, kind))
        seen.calls += 1
        self._looking = True  # what is computed for the look is not the model's
        try:
            with torch.no_grad():
                for tensor in filter(_has_values, tensors_in(output)):
                    self._look_at(seen, tensor.detach())
        finally:
            self._looking = False

    def _look_at(self, seen: Output, tensor: torch.Tensor) -> None:
        seen.sums.append(sums_of(tensor))
        if is_activation(seen.kind) and seen.comparable:
            known = seen.units
            seen.units = seen_in(known, seen.kind, tensor, self._channels_first)
            seen.comparable = known is None or seen.units is not None


def _is_run_again() -> bool:
    """Whether a checkpoint runs forward code again for the backward pass: counted already."""
    return torch._C._current_autograd_node() is not None


def _has_values(tensor: torch.Tensor) -> bool:
    numbers = tensor.is_floating_point() or tensor.is_complex()
    return numbers and tensor.device.type != "meta" and not tensor.is_nested and tensor.numel() > 0


def tensors_in(output: Any, depth: int = 4) -> list[torch.Tensor]:
    """The tensors in what a module gave: one, or several in tuples, dicts and objects with fields."""
    if isinstance(output, torch.Tensor):
        return [output]
    if depth == 0:
        return []
    if isinstance(output, dict):
        parts = list(output.values())
    elif isinstance(output, list | tuple):
        parts = list(output)
    else:
        parts = list(getattr(output, "__dict__", {}).values()) if hasattr(output, "__dataclass_fields__") else []
    return [tensor for part in parts for tensor in tensors_in(part, depth - 1)]
