"""What a step is given, kept before it runs, and what it leaves behind."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradtrend.model.capture import OutsideState
from gradtrend.recording.outside import snapshot_outside
from gradtrend.recording.random_states import snapshot_random_states
from gradtrend.recording.trees import map_tensors


@dataclass(frozen=True, slots=True)
class Before:
    """A step as it was before it ran: batches, random states, the tensors that it may write to, all else to compare.

    `marks` say of each parameter what changes when it is written to.
    """

    batches: list[Any]
    random_states: Mapping[str, Any]
    tensors: Mapping[str, torch.Tensor]
    marks: Mapping[str, tuple[int, float]]
    outside: OutsideState

    def changed(self, model: torch.nn.Module) -> set[str]:
        """The parameters that were written to since."""
        now = _marks(model, {name for name, mark in self.marks.items() if not math.isnan(mark[1])})
        return {name for name, mark in now.items() if name in self.marks and _differs(mark, self.marks[name])}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a step left behind: the mean loss, and the norms of the gradients there are, without the loss scale."""

    loss: float | None
    norms: Mapping[str, float]
    bad: tuple[str, ...]

    @property
    def norm(self) -> float:
        """That of all gradients; 0 where there is none."""
        return math.hypot(*self.norms.values())

    @property
    def finite(self) -> bool:
        """Whether the loss, every gradient and the norm are finite."""
        return not self.bad and math.isfinite(self.norm) and math.isfinite(self.loss or 0.0)


def before(model: torch.nn.Module, batches: Sequence[Any], changing: Collection[str] | None) -> Before:
    """Keep what the step may change. `changing` are the frozen parameters that steps write to; None before the first.

    Buffers are always kept: BatchNorm writes to its statistics without a trace. Of frozen parameters the first step
    shows, by their sums, which a step writes to (a teacher's moving average); these are kept from then on.
    """
    parameters = dict(model.named_parameters())
    kept = {name: tensor for name, tensor in model.named_buffers() if not torch.nn.parameter.is_lazy(tensor)}
    kept |= {name: parameters[name] for name in changing or () if name in parameters}
    device = next((parameter.device for parameter in parameters.values()), torch.device("cpu"))
    return Before(
        batches=map_tensors(list(batches), torch.clone),  # a step may write to its batch
        random_states=snapshot_random_states(device),
        tensors={name: tensor.detach().clone() for name, tensor in kept.items()},
        marks=_marks(model, _frozen(parameters) if changing is None else ()),
        outside=snapshot_outside(model, before=True),
    )


def look(model: torch.nn.Module, losses: Sequence[torch.Tensor], scale: float) -> Seen:
    """The losses and gradients that the step has left, the norms as training computes them, read in one transfer."""
    found = {name: _dense(p.grad) for name, p in model.named_parameters() if p.grad is not None}
    made = _norms(list(found.values()))
    device = made[0].device if made else torch.device("cpu")
    values = torch.stack([norm.to(device, torch.float64) for norm in made]).tolist() if made else []
    norms = {name: value / scale for name, value in zip(found, values, strict=True)}
    bad = tuple(n for n, norm in norms.items() if not math.isfinite(norm) and not bool(torch.isfinite(found[n]).all()))
    mean = float(torch.stack([loss.double().to(losses[0].device) for loss in losses]).mean()) if losses else None
    return Seen(mean, norms, bad)


def _norms(gradients: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """One norm a gradient; halves are summed in float32. Those that are alike are taken together."""
    wide = [g.float() if g.dtype in (torch.float16, torch.bfloat16) else g for g in gradients]
    if wide and len({(gradient.dtype, gradient.device) for gradient in wide}) == 1:
        return list(torch._foreach_norm(wide))
    return [torch.linalg.vector_norm(gradient) for gradient in wide]


def values_of(gradient: torch.Tensor) -> torch.Tensor:
    """The elements of a gradient; of a sparse one (of an embedding) those that it has."""
    return gradient.coalesce().values() if gradient.is_sparse else gradient


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    values = values_of(gradient)
    return torch.view_as_real(values.resolve_conj()) if values.is_complex() else values


def _frozen(parameters: Mapping[str, torch.nn.Parameter]) -> set[str]:
    return {name for name, p in parameters.items() if not p.requires_grad and not torch.nn.parameter.is_lazy(p)}


def _marks(model: torch.nn.Module, summed: Collection[str]) -> dict[str, tuple[int, float]]:
    """The version of each parameter, and the sum of those whose `.data` may be written to, which no version counts."""
    return {
        name: (parameter._version, float(parameter.detach().sum().real) if name in summed else math.nan)
        for name, parameter in model.named_parameters()
        if not torch.nn.parameter.is_lazy(parameter)  # made in its first step, which overwrites nothing
    }


def _differs(one: tuple[int, float], other: tuple[int, float]) -> bool:
    return one[0] != other[0] or (one[1] != other[1] and not (math.isnan(one[1]) or math.isnan(other[1])))
