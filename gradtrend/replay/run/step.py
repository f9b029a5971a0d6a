"""Run the captured step once: forward and backward over the microbatches, no optimizer step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from gradtrend.recording.around import values_of
from gradtrend.replay.run.operators import gradient_is_finite, parameter_norm
from gradtrend.replay.run.stream import LARGE, GradientStream
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
        given = only if only is not None else list(enumerate(batches))
        with _stream(subject, precision, len(given)) as stream:
            for index, batch in given:
                with precisions.entered(precision, subject.device):
                    loss = _loss_of(subject, batch, index, only is not None, backward)
                if backward and loss.requires_grad:
                    with precisions.entered_backend(precision, subject.device):
                        (loss / subject.loss_divisor * scale).backward()
                losses.append(loss.item())
        norm, bad, overflows = _measured(subject.model, stream, scale) if backward else (None, (), False)
    total = sum(losses) / subject.loss_divisor
    return StepResult(total, tuple(losses), norm, bad, overflows)


def _loss_of(subject: Subject, batch: Any, index: int, alone: bool, backward: bool) -> torch.Tensor:
    """The loss, without the memory for a backward pass where none follows: unless the step takes gradients itself."""
    if backward:
        return subject.loss_of(batch, index, alone)
    try:
        with torch.no_grad():
            return subject.loss_of(batch, index, alone)
    except RuntimeError as error:
        if "does not require grad" not in str(error):
            raise
    subject.reset()
    return subject.loss_of(batch, index, alone)


def _stream(subject: Subject, precision: str, count: int) -> AbstractContextManager[GradientStream | None]:
    """What lets the gradients of a large model in float64 go as they come; none are to be added up."""
    if precision == "float64" and count == 1 and subject.parameter_bytes > LARGE:
        return GradientStream(subject.model)
    return nullcontext()


def _measured(
    model: torch.nn.Module, stream: GradientStream | None, scale: float
) -> tuple[float | None, tuple[str, ...], bool]:
    """The norm without the scale, the parameters whose gradient is bad, and whether only the norm overflows."""
    if stream is not None:
        return stream.norm, stream.bad, False
    norm, bad = gradient_norm(model), _bad_gradients(model)
    return norm / scale, bad, not bad and _norm_overflows(model, norm, scale)


def gradient_norm(model: torch.nn.Module) -> float:
    """The norm of all gradients; summed in float64, so that it overflows only where the elements themselves do."""
    return math.hypot(*(parameter_norm(gradient) for gradient in _gradients(model)))


def _norm_overflows(model: torch.nn.Module, norm: float, scale: float) -> bool:
    """Whether the norm as training computes it (`clip_grad_norm_`: in the gradients' own type) is infinite.

    The squares of float32 overflow above 1.8e19, the norm of float16 gradients above 65504.
    """
    if norm / scale < _SAFE_NORM or not math.isfinite(norm):
        return False
    dense = [values_of(grad) / scale for grad in _gradients(model)]
    norms = [torch.linalg.vector_norm(grad) for grad in dense]
    return not math.isfinite(torch.linalg.vector_norm(torch.stack([n.to(norms[0].device) for n in norms])).item())


def _bad_gradients(model: torch.nn.Module) -> tuple[str, ...]:
    """Names of the parameters whose gradient holds NaN or inf."""
    return tuple(
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is not None and not gradient_is_finite(parameter.grad)
    )


def _gradients(model: torch.nn.Module) -> list[torch.Tensor]:
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
