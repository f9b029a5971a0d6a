"""The range of every module's output in one run: the first bad module, the largest magnitude, the last frames."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import torch

from gradtrend.model.replay import Magnitude, ModuleFrame
from gradtrend.replay.run import operators
from gradtrend.replay.run.following import ModuleStack

_FRAMES = 12  # module outputs kept before the first bad one: about the last two blocks of a network


class ModuleRanges:
    """Entered around a run; afterwards holds what the modules' outputs looked like up to the first bad one.

    `overflowed` says that the first bad one holds inf. `largest` is the largest finite magnitude, `headroom` the fewest
    decades between an output and the maximum of its type. Outputs whose only non-finite values are -inf count as masks.
    With `until`, that module's first output is the last one looked at.
    """

    def __init__(self, model: torch.nn.Module, until: str | None = None) -> None:
        self.first_bad: str | None = None
        self.overflowed = False
        self.largest: float | None = None
        self.headroom: float | None = None
        self.frames: deque[ModuleFrame] = deque(maxlen=_FRAMES)
        self._stack = ModuleStack(model, self._look)
        self._until = until
        self._done = False

    def __enter__(self) -> ModuleRanges:
        self._stack.attach()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def _look(self, name: str, module: torch.nn.Module, output: Any) -> None:
        if self.first_bad is None and not self._done:
            outputs = [t for t in operators.tensors_in(_plain(output)) if operators.can_be_checked(t)]
            for index, tensor in enumerate(outputs):
                label = "output" if len(outputs) == 1 else f"output[{index}]"
                self._look_at(name, type(module).__name__, label, tensor.detach())
        self._done = self._done or (self._until is not None and name == self._until)

    def _look_at(self, name: str, kind: str, label: str, tensor: torch.Tensor) -> None:
        with torch.no_grad():
            finite = operators.is_finite(tensor)
            if not finite and self.first_bad is None and not operators.is_mask(tensor):
                self.first_bad = name or kind
                self.overflowed = bool(torch.isinf(tensor).any())
            seen = _range_of(label, tensor) if finite else operators.magnitude(label, tensor)
        if finite:  # the others are not what led there
            self.frames.append(ModuleFrame(name, kind, seen))
        if finite or seen.abs_max:  # an output without any finite element has no range
            self.largest = max(self.largest or 0.0, seen.abs_max)
        if seen.abs_max:
            decades = math.log10(torch.finfo(tensor.dtype).max) - math.log10(seen.abs_max)
            self.headroom = decades if self.headroom is None else min(self.headroom, decades)


def _range_of(label: str, tensor: torch.Tensor) -> Magnitude:
    low, high = torch.aminmax(tensor.abs())
    return Magnitude(label, operators.dtype_name(tensor.dtype), tuple(tensor.shape), low.item(), high.item())


def _plain(output: Any) -> Any:
    """A module may give a dict or an object with fields."""
    if isinstance(output, dict):
        return list(output.values())
    return output
