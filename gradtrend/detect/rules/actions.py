"""Orders a rule's next actions by the evidence of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradtrend.detect.curves.run import Curve
from gradtrend.detect.rules.circumstances import CIRCUMSTANCES, EVIDENCE
from gradtrend.detect.rules.template import fill
from gradtrend.model.rule import Action


def actions_for(actions: Sequence[Action], curve: Curve, values: Mapping[str, object]) -> tuple[str, ...]:
    """The actions' texts, those that rest on evidence of this run first, otherwise in the order of the rule.

    An action whose circumstance is not known to hold is dropped, and so is one that speaks of a value not known.
    """
    framework = curve.run.log.settings.framework or ""
    ranked: list[tuple[bool, int, str]] = []
    for i, action in enumerate(actions):
        if action.when is not None and not CIRCUMSTANCES[action.when](curve):
            continue
        text = fill(action.text_for.get(framework, action.text), values)
        if text is not None:
            ranked.append((action.when not in EVIDENCE, i, text))
    return tuple(text for _, _, text in sorted(ranked))
