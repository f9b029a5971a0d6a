"""What the values of a run look like that could not be judged: the commonest question is whether this is normal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gradtrend.detect.counsel.facts import Facts
from gradtrend.detect.curves.levels import median
from gradtrend.detect.curves.series import FloatArray
from gradtrend.detect.rules.template import show
from gradtrend.model.advice import SoFar
from gradtrend.model.words import Verdict

# A norm that keeps within a decade over a few values, and a loss that ends no more than a tenth above where it began.
_BAND = 10.0
_NO_WORSE = 1.1
_STANDS = 0.01  # a hundredth of a loss over eight values and more: it has not begun to learn
_LEVEL_POINTS = 8


@dataclass(frozen=True, slots=True)
class Look:
    """What the values look like, and the sentence that says so with their numbers."""

    so_far: SoFar | None
    text: str | None = None


def look_of(facts: Facts) -> Look:
    """What the values of a run look like so far."""
    if not facts.healthy and (facts.failed or facts.alarmed or facts.rose or facts.run.nonfinite.any):
        return Look(SoFar.SUSPICIOUS)
    good = [text for text in (*_norm_texts(facts), *_loss_texts(facts)) if text is not None]
    if any(text == "" for text in good) and not facts.healthy:
        return Look(None)
    good = [text for text in good if text]
    return Look(SoFar.HEALTHY, " and ".join(good)) if good else Look(None)


def so_far(facts: Facts) -> SoFar | None:
    """The word for an undetermined run; None for one that was judged, and where nothing can be said."""
    return look_of(facts).so_far if facts.verdict is Verdict.UNDETERMINED else None


def _norm_texts(facts: Facts) -> Iterator[str | None]:
    """Of each norm the sentence of a calm one, "" for one that is not, None for one that is not logged."""
    for norm in facts.run.norms:
        values = norm.finite_values
        values = values[values > 0]
        if len(values) > 1:
            low, high = float(values.min()), float(values.max())
            yield f"{norm.metric} keeps between {show(low)} and {show(high)}" if _calm(values) else ""
        elif len(norm.finite_values) > 1:
            yield ""  # exact zeros


def _calm(values: FloatArray) -> bool:
    """Whether the last values do not lie above the first by a decade."""
    return bool(values[-1] <= _BAND * median(values[: max(1, len(values) // 2)]))


def _loss_texts(facts: Facts) -> Iterator[str | None]:
    loss = facts.run.loss
    values = np.zeros(0) if loss is None else loss.finite_values
    if loss is None or len(values) < 2:
        return
    third = max(1, len(values) // 3)
    first, last = median(values[:third]), median(values[-third:])
    if last > first + (_NO_WORSE - 1) * abs(first):
        yield ""
    elif last < first - _STANDS * abs(first) and last >= (start := float(values[0])):
        # A third that holds a blow-up lies above the start, and what comes down from it is the way back.
        yield "" if last > start + (_NO_WORSE - 1) * abs(start) else None
    elif last < first - _STANDS * abs(first):
        yield f"{loss.metric} fell from {show(float(first))} to {show(float(last))}"
    elif len(values) >= _LEVEL_POINTS and not facts.run.norms and not facts.rewarded:
        yield ""
    else:
        yield None
