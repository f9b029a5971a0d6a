"""The random numbers of a run, kept so that a part of the batch is given those that its samples had in the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from gradtrend.replay.run import operators
from gradtrend.replay.run.draws import Draws, GlobalDraws
from gradtrend.replay.run.mode import OperatorMode

_Drawn = tuple[str, list[torch.Tensor]]  # an operator's name and what it gave


@dataclass(slots=True)
class Tape:
    """What the random operators gave, in their order, in a run with `size` samples."""

    size: int
    drawn: list[_Drawn] = field(default_factory=list)
    draws: Draws = field(init=False)

    def __post_init__(self) -> None:
        self.draws = Draws(self.size)


@contextmanager
def recording(tape: Tape) -> Iterator[None]:
    """Entered around a run of the whole batch: fills the tape."""
    with _Recording(tape), GlobalDraws(tape.draws):
        yield


@contextmanager
def playing(tape: Tape, indices: Sequence[int]) -> Iterator[None]:
    """Entered around a run of the samples `indices`: gives them the numbers that they had in the whole batch.

    What is drawn in another kind or shape than the tape has is drawn anew.
    """
    with (
        _Playing(tape, indices) if tape.drawn else nullcontext(),
        GlobalDraws(tape.draws, indices) if tape.draws.by_site else nullcontext(),
    ):
        yield


class _Recording(OperatorMode):
    def __init__(self, tape: Tape) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tape = tape

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in func.tags:
            outputs = [tensor.detach().clone() for tensor in operators.tensors_in(result)]
            self._tape.drawn.append((operators.short_name(func), outputs))
        return result


class _Playing(OperatorMode):
    def __init__(self, tape: Tape, indices: Sequence[int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._left = list(tape.drawn)
        self._size, self._indices = tape.size, list(indices)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return result
        name, drawn = self._left[0] if self._left else ("", [])
        made = list(operators.tensors_in(result))
        if name != operators.short_name(func) or len(drawn) != len(made):
            return result
        self._left.pop(0)
        found = [self._of_samples(whole, part) for whole, part in zip(drawn, made, strict=True)]
        chosen = [values for values in found if values is not None]
        if len(chosen) != len(made):
            return result
        if name == "native_dropout":  # its output follows from its input and the mask
            mask, rate = chosen[1], float(args[1])
            chosen[0] = args[0] * mask / (1 - rate) if rate < 1 else torch.zeros_like(args[0])
        for part, values in zip(made, chosen, strict=True):
            part.copy_(values)
        return result

    def _of_samples(self, whole: torch.Tensor, part: torch.Tensor) -> torch.Tensor | None:
        """The rows of these samples, of the one dimension that differs; several rows a sample lie together."""
        if whole.ndim != part.ndim:
            return None
        different = [place for place in range(whole.ndim) if whole.shape[place] != part.shape[place]]
        if not different:  # as many samples as in the whole, which may be some of them several times
            if self._indices == list(range(self._size)):
                return whole
            different = [place for place in range(whole.ndim) if whole.shape[place] % self._size == 0][:1]
            if not different or len(self._indices) != self._size:
                return whole
        if len(different) != 1 or whole.shape[different[0]] % self._size:
            return None
        each = whole.shape[different[0]] // self._size
        rows = [index * each + row for index in self._indices for row in range(each)]
        if len(rows) != part.shape[different[0]]:
            return None
        return whole.index_select(different[0], torch.as_tensor(rows, device=whole.device))
