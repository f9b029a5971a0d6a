"""Fired rules -> the trend of each series and the verdict of the run, each with a confidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gradtrend.detect.confidence import confidence, unrivalled
from gradtrend.detect.curves.case import RunCase
from gradtrend.detect.curves.series import Series
from gradtrend.detect.rules.evaluate import Outcome
from gradtrend.detect.rules.steps import steps_of
from gradtrend.model.words import Trend, Verdict

# A trend found on few or doubtful points stands all the same: an explosion is clear with 3 points, and clipping cannot
# hide one that is there.
_STANDS_REGARDLESS = (Trend.EXPLODING,)
_PRECEDENCE = (Trend.EXPLODING, Trend.VANISHING, Trend.WARMUP_SPIKE)


@dataclass(frozen=True, slots=True)
class Judged:
    """One gradient-norm series with its trend; `confidence`, rivals aside, is None when undetermined."""

    series: Series
    trend: Trend
    confidence: float | None
    onset_step: int | None


def judge_series(series: Series, outcomes: Sequence[Outcome]) -> Judged:
    """The trend of one series from all rules evaluated on it."""
    fired = {o.rule.trend: o for o in reversed(outcomes) if o.fired and o.rule.trend is not None}
    forbidden = any(o.fired and o.rule.forbids_verdict for o in outcomes)
    points = next((o.case.shape.points for o in outcomes if o.case.shape is not None), 0)
    for trend in _PRECEDENCE:
        if trend in fired and (not forbidden or trend in _STANDS_REGARDLESS):
            outcome = fired[trend]
            return Judged(series, trend, confidence(outcome.strength, points), steps_of(outcome)[0])
    if forbidden or not points:
        return Judged(series, Trend.UNDETERMINED, None, None)
    return Judged(series, Trend.STABLE, confidence(math.inf, points), None)


def run_verdict(run: RunCase, judged: Sequence[Judged], outcomes: Sequence[Outcome]) -> tuple[Verdict, float | None]:
    """The first verdict, in order of precedence, that any series or rule gives; the surest one's confidence."""
    layers = {t: [o for o in outcomes if o.fired and o.rule.scope == "layer" and o.rule.trend is t] for t in Trend}
    for trend in (Trend.EXPLODING, None, Trend.VANISHING, Trend.WARMUP_SPIKE, Trend.STABLE):
        if trend is None:
            if run.nonfinite.collapsed:
                sure_of_it = _collapse_confidence(run) * _unrivalled(outcomes, (Trend.EXPLODING,))
                return Verdict.NAN_COLLAPSE, round(sure_of_it, 3)
            continue
        sure = [j.confidence for j in judged if j.trend is trend and j.confidence is not None]
        sure += [confidence(o.strength, o.case.shape.points) for o in layers[trend] if o.case.shape is not None]
        if sure:
            # "stable" must hold for every judged series, an alarm for one.
            own = min(sure) if trend is Trend.STABLE else max(sure)
            above = _PRECEDENCE if trend is Trend.STABLE else _PRECEDENCE[: _PRECEDENCE.index(trend)]
            return Verdict(trend.value), round(own * _unrivalled(outcomes, above), 3)
    return Verdict.UNDETERMINED, None


def _unrivalled(outcomes: Sequence[Outcome], trends: Sequence[Trend]) -> float:
    """What doubt the nearest rule leaves that would have given one of these verdicts instead, on any series."""
    return unrivalled(max((o.strength for o in outcomes if o.rule.trend in trends and not o.fired), default=0.0))


def _collapse_confidence(run: RunCase) -> float:
    """Sure when many points end non-finite or a captured step says so; a single last point may be a skipped update."""
    state = run.nonfinite
    if state.evidence_step is not None:
        return 0.95
    return 1 - 0.5 / (1 + state.collapse_points)
