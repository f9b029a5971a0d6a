"""Gradients that are measured and let go one by one, for a model too large to hold all of them in float64."""

from __future__ import annotations

import math
from collections import Counter
from types import TracebackType
from typing import Any

import torch

from gradtrend.replay.run.operators import gradient_is_finite, parameter_norm

LARGE = 256 * 1024 * 1024  # bytes of parameters: below, gradients in float64 take no memory that matters


class GradientStream:
    """Entered around one backward pass: `norm` and `bad` (names) of what it gave, while no gradient is kept.

    `norm` is None where a gradient came in parts (reentrant checkpoints), each of which was let go before the next.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self._handles: list[Any] = []
        self._norms: list[float] = []
        self._times: Counter[str] = Counter()
        self._bad: dict[str, None] = {}

    @property
    def norm(self) -> float | None:
        """The norm of all gradients together."""
        return None if any(count > 1 for count in self._times.values()) else math.hypot(*self._norms)

    @property
    def bad(self) -> tuple[str, ...]:
        """The parameters whose gradient is non-finite, in the model's order."""
        return tuple(name for name, _ in self._named if name in self._bad)

    def __enter__(self) -> GradientStream:
        for name, parameter in self._named:
            self._handles.append(parameter.register_post_accumulate_grad_hook(self._take(name)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()

    def _take(self, name: str) -> Any:
        def take(parameter: torch.Tensor) -> None:
            if parameter.grad is None:
                return
            self._times[name] += 1
            self._norms.append(parameter_norm(parameter.grad))
            if not gradient_is_finite(parameter.grad):
                self._bad[name] = None
            parameter.grad = None

        return take
