"""How a rule is evaluated: conditions, alternatives, what cannot be measured, holding, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.detect.confidence import confidence, unrivalled
from gradtrend.detect.rules.evaluate import Check, evaluate
from gradtrend.model.rule import Alternative, Condition, Hold, Missing, Rule
from gradtrend.model.words import Severity
from tests.detect.runs import curve_of, log_of

STEP = [1.0] * 60 + [100.0] * 40
RULE = Rule("X1", "x", Severity.WARNING, "summary", "message")


def rise(above: float) -> Condition:
    return Condition("decades_above_baseline", "why", above=above)


def loss_gain(below: float, missing: Missing = Missing.SKIP) -> Condition:
    return Condition("loss_gain_overall", "why", below=below, missing=missing)


def either(*groups: Sequence[Condition]) -> tuple[Alternative, ...]:
    return tuple(Alternative(f"way {i}", tuple(group)) for i, group in enumerate(groups))


def check(
    *conditions: Condition, either: tuple[Alternative, ...] = (), hold: Hold | None = None, loss: bool = False
) -> Check:
    log = log_of(STEP, list(np.linspace(4, 1, 100)) if loss else None)
    return evaluate(replace(RULE, when=conditions, alternatives=either, hold=hold or Hold()), curve_of(log))


def test_all_conditions_must_hold() -> None:
    assert check(rise(1.0)).fired
    assert not check(rise(3.0)).fired
    assert not check(rise(1.0), rise(3.0)).fired


def test_the_evidence_is_what_was_measured_and_its_limit() -> None:
    (evidence,) = check(rise(1.5)).evidence
    assert (evidence.measure, evidence.observed, evidence.limit) == ("decades_above_baseline", pytest.approx(2), 1.5)


def test_the_strength_is_that_of_the_weakest_condition() -> None:
    assert check(rise(0.5)).strength == pytest.approx(4)
    assert check(rise(0.5), rise(1.6)).strength == pytest.approx(1.25)
    assert check(rise(4.0)).strength == pytest.approx(0.5)


def test_what_cannot_be_measured_leaves_the_rule_unchecked_or_is_passed_over() -> None:
    unchecked = check(rise(1.0), loss_gain(0.1))
    assert (unchecked.fired, unchecked.missing) == (False, "no usable loss")
    assert check(rise(1.0), loss_gain(0.1, missing=Missing.PASS)).fired
    assert not check(rise(1.0), loss_gain(0.1, missing=Missing.PASS), loss=True).fired


def test_one_alternative_is_enough() -> None:
    assert check(either=either([rise(3.0)], [rise(1.0)])).fired
    assert not check(rise(5.0), either=either([rise(3.0)], [rise(1.0)])).fired
    assert not check(either=either([rise(3.0)], [rise(1.0), rise(3.0)])).fired


def test_an_alternative_that_can_be_measured_stands_in_for_one_that_cannot() -> None:
    assert check(either=either([loss_gain(0.1)], [rise(1.0)])).fired
    quiet = check(either=either([loss_gain(0.1)], [rise(3.0)]))
    assert (quiet.fired, quiet.missing) == (False, None)


def test_a_change_must_have_held() -> None:
    assert check(rise(1.0), hold=Hold(points=30)).fired
    assert not check(rise(1.0), hold=Hold(fraction=0.5)).fired
    assert check(rise(1.0), hold=Hold(fraction=0.3)).fired


# The end lies far below where the run began, for 60 points, and less far above its lowest level, for 30.
FELL_AND_ROSE = [1e4] * 40 + [1.0] * 30 + [20.0] * 30


@pytest.mark.parametrize(
    ("condition", "fires"),
    [
        (Condition("decades_above_baseline", "why", above=1.0), False),
        (Condition("decades_fallen", "why", above=0.5), True),
        (Condition("typical_norm", "why", above=1.0), True),
    ],
    ids=["of the rise", "of the fall", "of neither"],
)
def test_the_change_that_the_rule_is_about_must_have_held(condition: Condition, fires: bool) -> None:
    curve = curve_of(log_of(FELL_AND_ROSE))
    assert evaluate(replace(RULE, when=(condition,)), curve).fired
    assert evaluate(replace(RULE, when=(condition,), hold=Hold(fraction=0.5)), curve).fired == fires


@given(st.floats(1, 10), st.floats(1, 10), st.integers(1, 1000))
def test_confidence_grows_with_strength_and_points(one: float, other: float, points: int) -> None:
    assert (confidence(one, points) <= confidence(other, points)) or one >= other
    assert confidence(one, points) <= confidence(one, points + 1) <= confidence(one, None) <= 1
    assert confidence(one, points) >= 0


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_verdict_is_surer_the_further_off_its_rivals_are(one: float, other: float) -> None:
    assert unrivalled(one) >= unrivalled(other) or one >= other
    assert 0.5 <= unrivalled(one) <= 1
