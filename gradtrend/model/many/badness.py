"""How bad a run is, by its verdict and its worst finding: which are looked at first."""

from __future__ import annotations

from gradtrend.model.words import Severity, Verdict

SICK = frozenset({Verdict.EXPLODING, Verdict.NAN_COLLAPSE, Verdict.DIVERGING, Verdict.VANISHING})
_PLACES: dict[Verdict | None, int] = {verdict: place for place, verdict in enumerate((*Verdict, None))}


def is_sick(verdict: Verdict | None, severity: Severity | None) -> bool:
    """Whether something is wrong with the training itself."""
    return verdict in SICK or severity is Severity.ERROR


def is_well(verdict: Verdict | None, severity: Severity | None) -> bool:
    """Whether there is nothing to look at: judged, not sick, and no warning."""
    judged = verdict not in (None, Verdict.UNDETERMINED)
    return judged and not is_sick(verdict, severity) and severity in (None, Severity.INFO)


def badness(verdict: Verdict | None, severity: Severity | None, confidence: float | None) -> tuple[int, int, float]:
    """A key that puts the worst first: the sick, those that could not be judged, those with a warning, then the others;
    of these by verdict, the surest first. `verdict` is None where a run could not be read.
    """
    not_judged = verdict in (None, Verdict.UNDETERMINED)
    kind = 0 if is_sick(verdict, severity) else 1 if not_judged else 3 if is_well(verdict, severity) else 2
    return kind, _PLACES[verdict], -(confidence or 0.0)
