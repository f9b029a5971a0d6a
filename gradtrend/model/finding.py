"""One rule that fired on a run, and what it rests on; the order in which findings are told."""

from __future__ import annotations

from collections.abc import Iterable
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
    """One rule that fired. Steps are the log's own; `confidence` is in 0..1; `action_ids` has one for each action. A
    finding is `known` where a baseline lists it.
    """

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
    action_ids: tuple[str | None, ...] = ()
    known: bool = False


def by_weight(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by severity, then rule (the trend before what follows from it), then first step (unknown steps last)."""
    return sorted(findings, key=_weight)


def _weight(finding: Finding) -> tuple[int, str, bool, int]:
    first = finding.first_step
    return -finding.severity.rank, finding.rule, first is None, first or 0
