"""What a measure is: a function of a Curve that rules know by a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.shape import Direction
from gradtrend.detect.measures.spans import Span

# What is counted says itself of what.
_IN_WORDS = {
    "decades": "in decades",
    "sigma": "in sigma of its own scatter",
    "share": "as a share",
    "x": "as a factor",
    "ratio": "as a ratio",
}


@dataclass(frozen=True, slots=True)
class Measure:
    """A named measure: the function, its unit, what it is in words, the steps it speaks of, and why it may be missing.

    `change` is the lasting change of level that it is about, which a rule's `hold` then looks at.
    """

    function: Callable[[Curve], float | None]
    unit: str
    says: str
    span: Span
    missing: str = "no finite gradient norm"
    change: Direction | None = None

    @property
    def meaning(self) -> str:
        """What it is, and in what unit, as a page about a rule says it."""
        unit = _IN_WORDS.get(self.unit)
        return self.says if unit is None else f"{self.says}, {unit}"
