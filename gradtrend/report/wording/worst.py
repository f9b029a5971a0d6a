"""Which of several runs is looked at first."""

from __future__ import annotations

from collections.abc import Iterable

from gradtrend.model.report import RunReport
from gradtrend.model.words import Verdict

# A run that could not be judged may be sick, one with a short spike in its warm-up seldom is.
_ORDER = {
    verdict: place
    for place, verdict in enumerate(
        (
            Verdict.EXPLODING,
            Verdict.NAN_COLLAPSE,
            Verdict.DIVERGING,
            Verdict.VANISHING,
            Verdict.UNDETERMINED,
            Verdict.WARMUP_SPIKE,
            Verdict.STABLE,
        )
    )
}


def worst_first(runs: Iterable[RunReport]) -> list[RunReport]:
    """By verdict, then by the weightiest finding, then the surest; else in the order given."""
    return sorted(runs, key=_badness)


def _badness(run: RunReport) -> tuple[int, int, float]:
    weightiest = max((finding.severity.rank for finding in run.findings), default=-1)
    return _ORDER[run.verdict], -weightiest, -(run.confidence or 0.0)
