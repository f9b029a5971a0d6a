"""Fired rules -> the trend of each series and the verdict of the run, each with a confidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gradtrend.detect.confidence import confidence, unrivalled
from gradtrend.detect.curves.loss import NEARLY
from gradtrend.detect.curves.run import RunCurves
from gradtrend.detect.curves.series import Series
from gradtrend.detect.rules.evaluate import Check
from gradtrend.model.rule import Scope
from gradtrend.model.words import Trend, Verdict

# A trend found on few or doubtful points stands all the same: an explosion is clear with 3 points, and clipping cannot
# hide one that is there.
_STANDS_REGARDLESS = (Trend.EXPLODING,)
# A norm of which most points are not finite is not seen: its finite values, a last one too, speak of a part (GT205).
_MOST = 0.5
# A loss of fewer points than this shows no level, as for a norm.
_WITNESS_POINTS = 8
_PRECEDENCE = (Trend.EXPLODING, Trend.VANISHING, Trend.WARMUP_SPIKE)


@dataclass(frozen=True, slots=True)
class Judged:
    """One gradient-norm series with its trend; `confidence`, rivals aside, is None when undetermined."""

    series: Series
    trend: Trend
    confidence: float | None
    onset_step: int | None


def judge_series(series: Series, checks: Sequence[Check]) -> Judged:
    """The trend of one series from all rules evaluated on it."""
    fired = {check.rule.trend: check for check in reversed(checks) if check.fired and check.rule.trend is not None}
    forbidden = any(check.fired and check.rule.forbids_verdict for check in checks)
    forbidden = forbidden or float((~series.finite).mean()) > _MOST
    points = next((check.curve.shape.points for check in checks if check.curve.shape is not None), 0)
    for trend in _PRECEDENCE:
        if trend in fired and (not forbidden or trend in _STANDS_REGARDLESS):
            check = fired[trend]
            return Judged(series, trend, confidence(check.strength, points), check.steps[0])
    if forbidden or not points:
        return Judged(series, Trend.UNDETERMINED, None, None)
    return Judged(series, Trend.STABLE, confidence(math.inf, points), None)


def run_verdict(run: RunCurves, judged: Sequence[Judged], checks: Sequence[Check]) -> tuple[Verdict, float | None]:
    """The first verdict, in order of precedence, that any series or rule gives; the surest one's confidence."""
    layers = {
        t: [check for check in checks if check.fired and check.rule.scope is Scope.LAYER and check.rule.trend is t]
        for t in Trend
    }
    for trend in (Trend.EXPLODING, None, Trend.VANISHING, Trend.WARMUP_SPIKE, Trend.STABLE):
        if trend is None:
            if run.nonfinite.collapsed:
                sure_of_it = _collapse_confidence(run) * _unrivalled(checks, (Trend.EXPLODING,))
                return Verdict.NAN_COLLAPSE, round(sure_of_it, 3)
            if (diverging := _diverging(checks)) is not None:
                return Verdict.DIVERGING, round(diverging * _unrivalled(checks, (Trend.EXPLODING,)), 3)
            continue
        sure = [j.confidence for j in judged if j.trend is trend and j.confidence is not None]
        sure += [
            confidence(check.strength, check.curve.shape.points)
            for check in layers[trend]
            if check.curve.shape is not None
        ]
        if sure:
            # "stable" must hold for every judged series, an alarm for one.
            own = min(sure) if trend is Trend.STABLE else max(sure)
            above = _PRECEDENCE if trend is Trend.STABLE else _PRECEDENCE[: _PRECEDENCE.index(trend)]
            seen = _seen(run) if trend in (Trend.STABLE, Trend.WARMUP_SPIKE) else 1.0
            return Verdict(trend.value), round(own * seen * _unrivalled(checks, above), 3)
    return Verdict.UNDETERMINED, None


def _seen(run: RunCurves) -> float:
    """What is left of the confidence in a healthy run whose norm is logged for a part of it only: a quarter at most is
    lost where a loss goes on to the end and shows what became of the run, half of it where nothing does.
    """
    first, last = run.span
    if first == last:
        return 1.0
    unseen = 1 - min((run.covers(norm) or 0.0 for norm in run.norms), default=1.0)
    enough = [loss for loss in run.furthest if len(loss.finite_values) >= _WITNESS_POINTS]
    witness = any(last - run.logged_until(loss) <= NEARLY * (last - first) for loss in enough)
    return 1 - (0.25 if witness else 0.5) * unseen


def _diverging(checks: Sequence[Check]) -> float | None:
    """How sure the surest rule is by which the loss diverges; None where none fired."""
    sure = [c for c in checks if c.fired and c.rule.verdict is Verdict.DIVERGING]
    return max((confidence(check.strength, check.points) for check in sure), default=None)


def _unrivalled(checks: Sequence[Check], trends: Sequence[Trend]) -> float:
    """What doubt the nearest rule leaves that would have given one of these verdicts instead, on any series; below an
    explosion that is also the one by which a loss diverges.
    """
    rivals = (
        check.strength
        for check in checks
        if not check.fired
        and (check.rule.trend in trends or (check.rule.verdict is not None and Trend.VANISHING in trends))
    )
    return unrivalled(max(rivals, default=0.0))


def _collapse_confidence(run: RunCurves) -> float:
    """High where many points end non-finite or a captured step says so; a single last point may be a skipped update."""
    state = run.nonfinite
    if state.evidence_step is not None:
        return 0.95
    return 1 - 0.5 / (1 + state.collapse_points)
