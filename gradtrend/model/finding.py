"""One rule that fired on a run, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass

from gradtrend.model.words import Severity


@dataclass(frozen=True, slots=True)
class Evidence:
    """One measure that a rule looked at: what was observed and the limit it crossed (None where there is none)."""

    measure: str
    observed: float | None
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that fired. Steps are the log's own; `confidence` is in 0..1."""

    rule: str
    name: str
    severity: Severity
    confidence: float
    message: str
    metric: str | None = None
    layer: str | None = None
    first_step: int | None = None
    last_step: int | None = None
    evidence: tuple[Evidence, ...] = ()
    actions: tuple[str, ...] = ()
