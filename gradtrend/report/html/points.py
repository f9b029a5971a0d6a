"""The points of a series as short JSON: four digits are more than a screen shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

Json = dict[str, object]
Packed = list[float | int | str]

_NAMES = {math.inf: "I", -math.inf: "-I"}


def packed_values(values: Iterable[float]) -> Packed:
    """Numbers to four digits; NaN is "N", infinities are "I" and "-I": JSON has none of these."""
    return [_short(value) for value in values]


def packed_steps(steps: Sequence[int]) -> list[int] | Json:
    """The first step and the differences; of steps that are evenly spaced `from`, `by` and `n`."""
    differences = [after - before for before, after in pairwise(steps)]
    if len(steps) > 2 and len(set(differences)) == 1:
        return {"from": steps[0], "by": differences[0], "n": len(steps)}
    return [*steps[:1], *differences]


def _short(value: float) -> float | int | str:
    if not math.isfinite(value):
        return _NAMES.get(value, "N")
    short = float(f"{value:.4g}")
    return int(short) if short == int(short) and abs(short) < 1e9 else short
