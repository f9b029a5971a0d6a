"""What a measure is: a function of a Curve that rules know by a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradtrend.detect.curves.run import Curve


@dataclass(frozen=True, slots=True)
class Measure:
    """A named measure: the function, its unit, what it says, and why it may be missing."""

    function: Callable[[Curve], float | None]
    unit: str
    says: str
    missing: str = "no finite gradient norm"
