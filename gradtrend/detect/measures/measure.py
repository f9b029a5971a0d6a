"""What a measure is: a function of a Curve that rules know by a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.shape import Direction
from gradtrend.detect.measures.spans import Span


@dataclass(frozen=True, slots=True)
class Measure:
    """A named measure: the function, its unit, what it says, the steps it speaks of, and why it may be missing.

    `change` is the lasting change of level that it is about, which a rule's `hold` then looks at.
    """

    function: Callable[[Curve], float | None]
    unit: str
    says: str
    span: Span
    missing: str = "no finite gradient norm"
    change: Direction | None = None
