"""A rule as data. The files in `rules/` are read into these types; the measures they name are code in `detect`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gradtrend.model.words import Severity, Trend


@dataclass(frozen=True, slots=True)
class Condition:
    """One measure and the limit it must be above or below; exactly one of the two is set. `why` gives the reason."""

    measure: str
    why: str
    above: float | None = None
    below: float | None = None

    @property
    def limit(self) -> float:
        """The number compared with."""
        limit = self.above if self.above is not None else self.below
        assert limit is not None
        return limit


@dataclass(frozen=True, slots=True)
class Action:
    """A next step for the user.

    `when` names a fact of the run that moves it first (and drops it where the fact is known to be false); `text_for`
    holds the wording for a framework (`lightly-train` ...) in place of `text`. Both are templates over the run's facts.
    """

    text: str
    when: str | None = None
    text_for: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `role`, `scope` ("run", "layer") and `note` say what it is applied to; `when` all must hold.

    `hold` is ("points", n), ("fraction", f) or ("until", "end"), or None; `unless` lists ids that silence the rule;
    `blind` says what it does not see.
    """

    id: str
    name: str
    severity: Severity
    summary: str
    help: str
    message: str
    role: str | None = None
    scope: str = "run"
    note: str | None = None
    trend: Trend | None = None
    when: tuple[Condition, ...] = ()
    hold: tuple[str, float | str] | None = None
    unless: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    blind: str = ""
