"""Run the captured step once: forward and backward over the microbatches, no optimizer step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from gradtrend.replay.run.operators import is_finite
from gradtrend.replay.subject import precision as precisions
from gradtrend.replay.subject.subject import Subject

# An explosion is ten times the usual norm or more: the limit of GT101, one decade above its baseline.
EXPLOSION = 10.0
_SAFE_NORM = 1e4  # below the largest number of every type: no norm overflows


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one run gave. `loss` is the sum of the microbatches' losses over the divisor.

    `losses` are those of the microbatches, undivided. Nothing reads them by name: runs that are the same have the same.
    `norm_overflows`: the gradients are finite, and their norm is not when it is computed in their own type.
    """

    loss: float
    losses: tuple[float, ...]
    gradient_norm: float | None
    bad_parameters: tuple[str, ...]
    norm_overflows: bool = False

    @property
    def finite(self) -> bool:
        """Whether the loss and every gradient are finite."""
        return math.isfinite(self.loss) and not self.bad_parameters


def run_step(
    subject: Subject,
    precision: str,
    only: Sequence[tuple[int, Any]] | None = None,
    backward: bool = True,
    watch: AbstractContextManager[Any] | None = None,
) -> StepResult:
    """The step from the captured state, in `precision`.

    `only` replaces the captured microbatches by these (index, batch) pairs; `watch` is entered around the whole.
    The gradients are left on the parameters (scaled, where the loss is). Raises what the model raises.
    """
    subject.reset()
    scale = subject.scale_in(precision)
    losses: list[float] = []
    with subject.in_type_of(precision) as batches, watch or nullcontext():
        for index, batch in only if only is not None else list(enumerate(batches)):
            with precisions.entered(precision, subject.device), torch.set_grad_enabled(backward):
                loss = subject.loss_of(batch, index, alone=only is not None)
            if backward and loss.requires_grad:
                with precisions.entered_backend(precision, subject.device):
                    (loss / subject.loss_divisor * scale).backward()
            losses.append(loss.item())
        norm = gradient_norm(subject.model) if backward else None
        bad = _bad_gradients(subject.model) if backward else ()
        overflows = norm is not None and not bad and _norm_overflows(subject.model, norm, scale)
    total = sum(losses) / subject.loss_divisor
    return StepResult(total, tuple(losses), None if norm is None else norm / scale, bad, overflows)


def gradient_norm(model: torch.nn.Module) -> float:
    """The norm of all gradients; summed in float64, so that it overflows only where the elements themselves do."""
    return math.hypot(*(parameter_norm(gradient) for gradient in _gradients(model)))


def _norm_overflows(model: torch.nn.Module, norm: float, scale: float) -> bool:
    """Whether the norm as training computes it (`clip_grad_norm_`: in the gradients' own type) is infinite.

    The squares of float32 overflow above 1.8e19, the norm of float16 gradients above 65504.
    """
    if norm / scale < _SAFE_NORM or not math.isfinite(norm):
        return False
    dense = [(grad.coalesce().values() if grad.is_sparse else grad) / scale for grad in _gradients(model)]
    norms = [torch.linalg.vector_norm(grad) for grad in dense]
    return not math.isfinite(torch.linalg.vector_norm(torch.stack([n.to(norms[0].device) for n in norms])).item())


def parameter_norm(tensor: torch.Tensor | None) -> float:
    """Norm of one tensor in float64 (float32 where the device has none)."""
    if tensor is None:
        return 0.0
    wide = torch.float32 if tensor.device.type == "mps" else torch.float64
    values = tensor.detach().coalesce().values() if tensor.is_sparse else tensor.detach()
    values = torch.view_as_real(values.resolve_conj()) if values.is_complex() else values
    return float(torch.linalg.vector_norm(values, dtype=wide))


def _bad_gradients(model: torch.nn.Module) -> tuple[str, ...]:
    """Names of the parameters whose gradient holds NaN or inf."""
    return tuple(
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is not None and not gradient_is_finite(parameter.grad)
    )


def gradient_is_finite(gradient: torch.Tensor) -> bool:
    """Whether every element is finite; a sparse gradient's (of an embedding) are its values."""
    values = gradient.coalesce().values() if gradient.is_sparse else gradient
    return not values.numel() or is_finite(values)


def _gradients(model: torch.nn.Module) -> list[torch.Tensor]:
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
