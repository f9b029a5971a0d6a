"""A series as one line of characters over an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from gradtrend.report.wording.style import Style

_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "_.:-=+*#"
# A band narrower than one decade is drawn as if it were one: noise of 20 % must look flat (two bars at most).
_MIN_DECADES = 1.0

Ends = tuple[float, float]


def sparkline(values: Sequence[float], style: Style) -> str:
    """One character a value: height by log10 of the size, `✕` for NaN and inf, the lowest bar for zero."""
    bars, bad = style.sign(_BARS, _PLAIN_BARS), style.sign("✕", "x")
    low, high = _logs_of(values) or (0.0, 1.0)
    return "".join(_bar(abs(v), low, high, bars, bad, style) for v in values)


def _sizes(values: Sequence[float]) -> list[float]:
    return [abs(v) for v in values if math.isfinite(v) and v != 0]


def _logs_of(values: Sequence[float]) -> Ends | None:
    logs = [math.log10(size) for size in _sizes(values)]
    if not logs:
        return None
    low, high = min(logs), max(logs)
    missing = max(0.0, _MIN_DECADES - (high - low))
    return low - missing / 2, high + missing / 2


def _bar(size: float, low: float, high: float, bars: str, bad: str, style: Style) -> str:
    if not math.isfinite(size):
        return style.paint(bad, "red")
    if size == 0:
        return bars[0]
    place = (math.log10(size) - low) / (high - low)
    return bars[min(len(bars) - 1, max(0, int(place * len(bars))))]


def fit(values: Sequence[float], width: int) -> list[float]:
    """`values` thinned to at most `width`: of each equal share a non-finite value, else the largest."""
    if len(values) <= width:
        return list(values)
    edges = [len(values) * i // width for i in range(width + 1)]
    return [_loudest(values[a:b]) for a, b in pairwise(edges)]


def _loudest(values: Sequence[float]) -> float:
    return next((v for v in values if not math.isfinite(v)), max(values, key=abs))
