"""The rebuilt step: a model, its microbatches on the device, and how to bring both back to the captured state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from gradtrend.recording.outside import plain_attributes
from gradtrend.recording.random_states import present_states
from gradtrend.recording.trees import map_tensors
from gradtrend.replay.subject import rng
from gradtrend.replay.subject.outside import Outside, set_attributes
from gradtrend.replay.subject.precision import DEFAULT_LOSS_SCALE, PARAMETER_TYPES


@dataclass(slots=True)
class Subject:
    """What is run, again and again.

    `compute_loss(microbatch, index)` gives the loss tensor. `modes` says which modules train (None: not captured),
    `trained` which parameters do. `buffers` and `types` are what `reset` restores. No
    optimizer steps, but a step may write to parameters itself (a teacher's moving average): `reload` then reads them
    from the capture again. `states_at` holds the random states and the model's own numbers at the
    start of each microbatch, once a whole step ran.
    """

    model: torch.nn.Module
    compute_loss: Callable[[Any, int], torch.Tensor]
    reload: Callable[[], None]
    batches: list[Any]
    device: torch.device
    random_states: Mapping[str, Any]
    loss_divisor: float
    modes: Mapping[str, bool] | None = None
    trained: Mapping[str, bool] = field(default_factory=dict)
    outside: Outside = field(default_factory=Outside)
    loss_scale: float = DEFAULT_LOSS_SCALE
    buffers: dict[str, torch.Tensor] = field(default_factory=dict)
    types: dict[str, torch.dtype] = field(default_factory=dict)
    writes: dict[str, tuple[int, str]] = field(default_factory=dict)
    states_at: dict[int, tuple[Mapping[str, Any], dict[tuple[str, str], Any]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def remember(self) -> None:
        """Take the present buffers and types as the captured ones."""
        self.buffers = {name: buffer.detach().clone() for name, buffer in self.model.named_buffers()}
        self.types = {name: tensor.dtype for name, tensor in _tensors(self.model)}
        self.writes = self._writes()

    @property
    def parameter_bytes(self) -> int:
        """The size of the parameters as they are now."""
        return sum(parameter.numel() * parameter.element_size() for parameter in self.model.parameters())

    def _own_type(self) -> torch.dtype:
        """The type that most of the parameters were captured in."""
        sizes: Counter[torch.dtype] = Counter()
        for name, parameter in self.model.named_parameters():
            sizes[self.types[name]] += parameter.numel()
        floating = {dtype: size for dtype, size in sizes.items() if dtype.is_floating_point}
        return max(floating, key=lambda dtype: floating[dtype], default=torch.float32)

    def _writes(self) -> dict[str, tuple[int, str]]:
        """What changes when a parameter is written to: its version and, of one that is not trained, its sum.

        A moving average is often written to the `.data` of a teacher, which no version counts.
        """
        return {
            name: (parameter._version, "" if parameter.requires_grad else _sum(parameter))
            for name, parameter in self.model.named_parameters()
        }

    def reset(self) -> None:
        """All that a run may change as at the start of the captured step."""
        if self._writes() != self.writes:
            self.reload()
            self.writes = self._writes()
        with torch.no_grad():
            for name, buffer in self.model.named_buffers():
                if name in self.buffers:
                    buffer.data = self.buffers[name].to(buffer.dtype, copy=True)
        self.model.zero_grad(set_to_none=True)
        self._set_modes()
        self.outside.restore(self.model)
        rng.restore(self.random_states, self.device)

    def _set_modes(self) -> None:
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad is not self.trained.get(name, parameter.requires_grad):
                parameter.requires_grad_(self.trained[name])
        if self.modes is None:
            set_train_mode = getattr(self.model, "set_train_mode", self.model.train)  # LightlyTrain freezes parts in it
            set_train_mode()
            return
        for name, module in self.model.named_modules():
            module.training = self.modes.get(name, True)  # not by train(), which a model may have overridden

    def scale_in(self, precision: str) -> float:
        """The factor on the loss, and so on its gradients, when the step is run in that precision."""
        return self.loss_scale if precision == "float16-scaled" else 1.0

    def loss_of(self, batch: Any, index: int, alone: bool) -> torch.Tensor:
        """The loss of one microbatch, on a copy (a step may write to its batch or take parts out).

        `alone`: the microbatches before it were not run, so what they would have left behind is put in place.
        """
        if alone and index in self.states_at:
            states, attributes = self.states_at[index]
            rng.restore(states, self.device)
            set_attributes(self.model, attributes)
        elif not alone:
            self.states_at[index] = present_states(self.device), dict(plain_attributes(self.model))
        return self.compute_loss(map_tensors(batch, torch.clone), index)

    def batches_in(self, precision: str) -> list[Any]:
        """The microbatches in the type that `precision` needs."""
        with self.in_type_of(precision) as batches:
            return list(batches)

    @contextmanager
    def in_type_of(self, precision: str) -> Iterator[list[Any]]:
        """Parameters, buffers and batches in the type that `precision` needs; yields the batches.

        A model keeps the types it was captured in (some layers may have another) when run in the one of most of them,
        and is cast whole to any other.
        """
        own = self._own_type()
        wanted = PARAMETER_TYPES.get(precision, torch.float32)
        if wanted is own:
            yield self.batches if own is torch.float32 else _cast_batches(self.batches, wanted)
            return
        try:
            _cast(self.model, lambda name: wanted)
            yield _cast_batches(self.batches, wanted)
        finally:
            self.model.zero_grad(set_to_none=True)
            _cast(self.model, lambda name: self.types[name])
            if own is torch.float64:  # what a narrower type has cut off is in the capture
                self.reload()
                self.writes = self._writes()


def _sum(parameter: torch.Tensor) -> str:
    wide = torch.float64 if parameter.is_floating_point() and parameter.device.type != "mps" else None
    return repr(parameter.detach().sum(dtype=wide).item())


def _cast_batches(batches: list[Any], wanted: torch.dtype) -> list[Any]:
    cast: list[Any] = map_tensors(batches, lambda t: t.to(wanted) if t.is_floating_point() else t)
    return cast


def _tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def _cast(model: torch.nn.Module, type_of: Callable[[str], torch.dtype]) -> None:
    with torch.no_grad():
        for name, tensor in _tensors(model):
            if tensor.is_floating_point():
                tensor.data = tensor.data.to(type_of(name))
