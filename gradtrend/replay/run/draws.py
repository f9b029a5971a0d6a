"""The numbers that a step draws from python's and numpy's global generators, kept as `randomness` keeps torch's."""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

_Site = tuple[str, str, int]  # function, file, line: one place of the step's code
# Not draws: they set or read the state, which a replay itself does.
_STATE = frozenset(["seed", "getstate", "setstate", "get_state", "set_state", "get_bit_generator", "set_bit_generator"])


@dataclass(slots=True)
class Draws:
    """What each place of the code drew, in its order, in a run with `size` samples."""

    size: int
    by_site: dict[_Site, list[Any]] = field(default_factory=lambda: defaultdict(list))

    def of_samples(self, site: _Site, count: int, fresh: Any, indices: Sequence[int]) -> Any:
        """The `count`th draw of a place in a run of these samples; `fresh` where the whole run tells nothing of it.

        A place that drew once or several times a sample gives each sample its own; an array with one entry a sample
        likewise.
        """
        drawn = self.by_site.get(site, [])
        if not drawn:
            return fresh
        each, rest = divmod(len(drawn), self.size)
        if each and not rest:
            place, which = divmod(count, each)
            return drawn[indices[place] * each + which] if place < len(indices) else fresh
        if count >= len(drawn):
            return fresh
        whole = drawn[count]
        if isinstance(whole, np.ndarray) and isinstance(fresh, np.ndarray) and whole.shape != fresh.shape:
            different = [place for place in range(whole.ndim) if whole.ndim == fresh.ndim]
            different = [place for place in different if whole.shape[place] != fresh.shape[place]]
            if len(different) == 1 and whole.shape[different[0]] == self.size:
                return np.take(whole, list(indices), axis=different[0])
            return fresh
        return whole


class GlobalDraws:
    """Entered around a run. Without `indices` it fills the draws, with them it gives these samples their own."""

    def __init__(self, draws: Draws, indices: Sequence[int] | None = None) -> None:
        self._draws, self._indices = draws, indices
        self._counts: dict[_Site, int] = defaultdict(int)
        self._originals: list[tuple[ModuleType, str, Any]] = []

    def __enter__(self) -> GlobalDraws:
        for module, name, function in _global_functions():
            self._originals.append((module, name, function))
            setattr(module, name, self._watched(f"{module.__name__}.{name}", function))
        return self

    def __exit__(self, *error: Any) -> None:
        for module, name, function in self._originals:
            setattr(module, name, function)
        self._originals.clear()

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def draw(*args: Any, **kwargs: Any) -> Any:
            value = function(*args, **kwargs)
            frame = sys._getframe(1)
            site = (name, frame.f_code.co_filename, frame.f_lineno)
            if self._indices is None:
                self._draws.by_site[site].append(value)
                return value
            count = self._counts[site]
            self._counts[site] = count + 1
            return self._draws.of_samples(site, count, value, self._indices)

        return draw


def _global_functions() -> Iterator[tuple[ModuleType, str, Any]]:
    """The functions of `random` and `numpy.random` that are methods of the one global generator."""
    for module in (random, np.random):
        for name, value in list(vars(module).items()):
            bound = getattr(value, "__self__", None)
            if name not in _STATE and callable(value) and isinstance(bound, random.Random | np.random.RandomState):
                yield module, name, value
