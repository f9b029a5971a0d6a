"""Orders a rule's next actions by the evidence of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradtrend.detect.curves.run import Curve
from gradtrend.detect.rules.circumstances import CIRCUMSTANCES, EVIDENCE
from gradtrend.detect.rules.template import fill
from gradtrend.model.rule import Action

_IN_ONE_WAY = frozenset({"lower-lr", "raise-lr", "warm-up-longer", "clip-gradients", "clip-lower", "resume-earlier"})


def actions_for(
    actions: Sequence[Action], curve: Curve, values: Mapping[str, object]
) -> tuple[tuple[str | None, str], ...]:
    """The actions as id and text, those that rest on evidence of this run first, otherwise in the order of the rule.

    An action whose circumstance is not known to hold is dropped, and so is one that speaks of a value not known. Of
    what can be done in one way only (one learning rate, one place to resume from) the first is kept.
    """
    framework = curve.run.log.settings.framework or ""
    ranked: list[tuple[bool, int, str | None, str]] = []
    for i, action in enumerate(actions):
        holds = CIRCUMSTANCES.get(action.when or "")  # those of a replay are not known to a log
        if action.when is not None and (holds is None or not holds(curve)):
            continue
        text = fill(action.text_for.get(framework, action.text), values)
        if text is not None:
            ranked.append((action.when not in EVIDENCE, i, action.id, text))
    kept: list[tuple[str | None, str]] = []
    for _, _, action_id, text in sorted(ranked, key=lambda one: one[:2]):
        if action_id not in _IN_ONE_WAY or action_id not in {before for before, _ in kept}:
            kept.append((action_id, text))
    return tuple(kept)
