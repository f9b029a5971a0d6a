"""The axes of the picture: where their ticks are, and what stands beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Noise of 20 % has to look flat, as in the text report.
_MIN_DECADES = 1.0
_MOST_DECADES, _MOST_STEPS = 7, 8  # ticks that have room


@dataclass(frozen=True, slots=True)
class Axes:
    """Steps first..last over x from left to right, log10 of values low..high over y from bottom to top (pixels)."""

    first: int
    last: int
    low: float
    high: float
    left: float
    right: float
    top: float
    bottom: float

    def x(self, step: float) -> float:
        """The pixel of a step."""
        return self.left + (step - self.first) / max(1, self.last - self.first) * (self.right - self.left)

    def y(self, value: float) -> float:
        """The pixel of a value; what is zero or below stands on the lower edge."""
        if value <= 0:
            return self.bottom
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.bottom - min(1.0, max(0.0, share)) * (self.bottom - self.top)


def log_range(values: Sequence[float]) -> tuple[float, float]:
    """log10 of the ends of the axis for values of which some are finite and positive, or none."""
    logs = [math.log10(v) for v in values if math.isfinite(v) and v > 0] or [0.0]
    low, high = min(logs), max(logs)
    missing = max(0.0, _MIN_DECADES - (high - low)) / 2
    room = max(0.08, (high - low) * 0.08)
    return low - missing - room, high + missing + room


def log_ticks(low: float, high: float) -> list[float]:
    """Values at decades; at 1, 2 and 5 of each, and more, where there are few."""
    decades = high - low
    digits: tuple[int, ...] = (1,)
    if decades < 2.6:
        digits = (1, 2, 5) if decades >= 1.3 else (1, 2, 3, 5, 7)
    apart = max(1, math.ceil(decades / (_MOST_DECADES - 1)))
    whole = range(math.floor(low), math.ceil(high) + 1)
    found = [digit * 10.0**decade for decade in whole if len(digits) > 1 or decade % apart == 0 for digit in digits]
    return [value for value in found if low <= math.log10(value) <= high]


def step_ticks(first: int, last: int) -> list[int]:
    """Round steps from the first to the last."""
    if last <= first:
        return [first]
    size = 10 ** math.floor(math.log10(max(1, last - first)))
    apart = next(
        a for a in (size // 10, size // 5, size // 2, size, 2 * size) if a and (last - first) / a <= _MOST_STEPS
    )
    return list(range(-(-first // apart) * apart, last + 1, apart))


def step_label(step: int) -> str:
    """`250k`, `1.5M`."""
    for size, unit, letter in ((1_000_000_000, 1e9, "G"), (1_000_000, 1e6, "M"), (10_000, 1e3, "k")):
        if abs(step) >= size:
            return f"{step / unit:.6g}{letter}"
    return str(step)
