"""Evaluates rules on curves and says, with the log's own numbers, why they fired or not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.shape import Change, Shape
from gradtrend.detect.curves.terms import names_metric, speaks_of
from gradtrend.detect.measures import MEASURES
from gradtrend.detect.measures.spans import Steps, first_span
from gradtrend.detect.rules.circumstances import kinds_of
from gradtrend.model.finding import Evidence
from gradtrend.model.rule import Condition, Hold, Missing, Rule, Shows

# Ratios of measure to limit are kept within 0.1 .. 10: beyond that nothing is more certain.
_MOST_RATIO = 10.0
# A jump of x100 in a log of a few points needs no second point to be believed: noise is a fraction of that.
_OUTRIGHT_DECADES = 2.0


@dataclass(frozen=True, slots=True)
class Check:
    """One rule on one curve.

    `strength` is how far the weakest condition is beyond its limit (1 = at the limit; over 1 fires); `missing` names
    the measure that could not be taken, and then the rule was not checked.
    """

    rule: Rule
    curve: Curve
    fired: bool
    strength: float
    evidence: tuple[Evidence, ...]
    missing: str | None = None

    @property
    def points(self) -> int | None:
        """How many points what the rule says of a series or the run rests on; None where it says nothing of either."""
        if self.rule.verdict is not None:
            return None if self.curve.series is None else len(self.curve.series.finite_values)
        return self.curve.shape.points if self.rule.trend is not None and self.curve.shape is not None else None

    @property
    def steps(self) -> Steps:
        """The first and last step that the rule speaks of, as its measures name them."""
        return first_span([MEASURES[e.measure].span for e in self.evidence], self.curve)


def evaluate(rule: Rule, curve: Curve) -> Check:
    """One rule on one curve. Alternatives are tried in turn; the strongest counts."""
    if not _can_show(rule.shows, curve):
        return Check(rule, curve, False, 0.0, ())
    if not rule.alternatives:
        return _checked(rule, curve, rule.when)
    checks = [_checked(rule, curve, (*rule.when, *alternative.when)) for alternative in rule.alternatives]
    checked = [check for check in checks if check.missing is None]
    return max(checked or checks, key=lambda check: (check.fired, check.strength))


def _can_show(shows: Shows, curve: Curve) -> bool:
    """Whether the log is one in which a known cause can show."""
    log = curve.run.log
    name = log.settings.framework
    asks = shows.frameworks or shows.kinds
    if asks and name not in shows.frameworks and kinds_of(log).isdisjoint(shows.kinds):
        return False
    if shows.signs and not any(speaks_of(log, sign) for sign in shows.signs):
        return False
    return not shows.metrics or any(names_metric(log, one) for one in shows.metrics)


def _checked(rule: Rule, curve: Curve, conditions: Sequence[Condition]) -> Check:
    evidence, strengths = [], [_MOST_RATIO]
    fired = True
    for condition in conditions:
        measure = MEASURES[condition.measure]
        observed = curve.measure(measure.function)
        if observed is None or math.isnan(observed):
            if condition.missing is Missing.PASS:
                continue
            return Check(rule, curve, False, 0.0, (), measure.missing)
        evidence.append(Evidence(condition.measure, observed, condition.limit))
        strengths.append(_ratio(condition, observed))
        fired = fired and condition.holds(observed)
    lasted, ratio = _held(rule.hold, curve, conditions)
    fired = fired and lasted
    strengths.append(ratio)
    strength = min(strengths)
    return Check(rule, curve, fired, max(strength, 1.0) if fired else min(strength, 1.0), tuple(evidence))


def _ratio(condition: Condition, observed: float) -> float:
    """How far an observation is beyond the limit, as a ratio; a limit of zero is either met or not."""
    high, low = (observed, condition.limit) if condition.above is not None else (condition.limit, observed)
    if low <= 0 or high <= 0:
        return _MOST_RATIO if condition.holds(observed) else 0.1
    return min(_MOST_RATIO, max(1 / _MOST_RATIO, high / low))


def _held(hold: Hold, curve: Curve, conditions: Sequence[Condition]) -> tuple[bool, float]:
    """Whether the change that the conditions are about has lasted, and the ratio that counts for the strength.

    That ratio is the one of the curve's larger change: beside it, how long a small change the other way has lasted says
    nothing of how near the rule came.
    """
    shape = curve.shape
    if shape is None or (hold.points is None and hold.fraction is None):
        return True, _MOST_RATIO
    own = _change_of(conditions, shape)
    ratio = _lasted(hold, curve, shape, own)
    return ratio >= 1, ratio if own is shape.climb else _lasted(hold, curve, shape, shape.larger)


def _change_of(conditions: Sequence[Condition], shape: Shape) -> Change:
    """The change that the conditions are about: a rise or a fall; the larger where they name neither or both."""
    named = {MEASURES[condition.measure].change for condition in conditions} - {None}
    only = named.pop() if len(named) == 1 else None
    return shape.larger if only is None else shape.change(only)


def _lasted(hold: Hold, curve: Curve, shape: Shape, change: Change) -> float:
    """Points that a change has lasted over points wanted; the largest ratio where they are enough.

    In a short log a third of its points is enough, and one point where it is x100 off; a log that has not even the
    points wanted holds nothing.
    """
    points = change.points + (curve.ending_points if change is shape.rise else 0)
    total = shape.points + curve.ending_points
    if hold.points is not None:
        least = 1 if change.decades >= _OUTRIGHT_DECADES else 2
        wanted = float(min(hold.points, max(least, total // 3)) if total >= hold.points else hold.points)
    else:
        wanted = (hold.fraction or 0.0) * total
    return _MOST_RATIO if points >= wanted else points / wanted
