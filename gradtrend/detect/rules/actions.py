"""Orders a rule's next actions by the evidence of the run and fills in its numbers."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence

from gradtrend.detect.curves.run import Curve
from gradtrend.detect.rules.circumstances import CIRCUMSTANCES, EVIDENCE
from gradtrend.model.rule import Action


def fill(template: str, values: Mapping[str, object]) -> str | None:
    """The template with its values, numbers to three significant digits; None where a value is not known."""
    shown: dict[str, str] = {}
    for _, name, _, _ in string.Formatter().parse(template):
        if name is None:
            continue
        value = values.get(name)
        if value is None:
            return None
        shown[name] = show(value)
    return template.format(**shown)


def show(value: object) -> str:
    """A number as a person writes it: three significant digits, integers whole."""
    if isinstance(value, float):
        if value != 0 and not 1e-3 <= abs(value) < 1e5:
            return f"{value:.2e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)


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
