"""Which actions were most often the fix in which situation, the cheapest test first.

The orders rest on what the maintainers found in some 150 public threads about training runs, over 60 code bases: there
lowering the learning rate was among the answers in 64, clipping in 36, "this is normal" in 36, a term of the loss in
25, the labels in 24, warm-up in 18, an upgrade in 10, the distributed set-up in 9, the gradient's graph and the reward
in 8 each. The first situation that holds gives the order; known causes (GT7xx) come before it, what else the findings
advise after.
"""

from __future__ import annotations

from gradtrend.detect.counsel.facts import Facts
from gradtrend.detect.counsel.situations.any_run import OF_ANY_RUN
from gradtrend.detect.counsel.situations.evidence import BY_EVIDENCE
from gradtrend.detect.counsel.situations.fields import BY_FIELD
from gradtrend.detect.counsel.situations.situation import Situation

__all__ = ["SITUATIONS", "Situation", "situation_of"]

# The first that holds counts: what is particular comes before what is general.
SITUATIONS: tuple[Situation, ...] = (*BY_EVIDENCE, *BY_FIELD, *OF_ANY_RUN)


def situation_of(facts: Facts) -> Situation | None:
    """The first situation that holds."""
    return next((situation for situation in SITUATIONS if situation.holds(facts)), None)
