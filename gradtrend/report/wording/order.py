"""The order in which findings are told."""

from __future__ import annotations

from collections.abc import Iterable

from gradtrend.model.finding import Finding


def by_weight(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by severity, then rule (the trend before what follows from it), then first step (unknown steps last)."""
    return sorted(findings, key=_weight)


def _weight(finding: Finding) -> tuple[int, str, bool, int]:
    first = finding.first_step
    return -finding.severity.rank, finding.rule, first is None, first or 0
