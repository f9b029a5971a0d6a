"""Which steps a fired rule speaks of: each measure names its own, and of several the most telling counts."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gradtrend.detect.measures import MEASURES, spans
from gradtrend.detect.measures.spans import Span, first_span
from gradtrend.detect.rules.evaluate import evaluate
from gradtrend.model.rule import Condition, Missing, Rule
from gradtrend.model.words import Severity
from tests.detect.runs import curve_of, log_of

NAN = math.nan
# Steps 0, 10, 20 ...: a spike in warm-up and one in mid-run, NaN that comes back, a fall, a rise to the end.
QUIET = [1.0 + 0.01 * (i % 3) for i in range(100)]
NORM = [*QUIET[:8], 500.0, *QUIET[9:50], 40.0, 60.0, *QUIET[52:60], NAN, *QUIET[61:70], *[1e-2] * 15, *[30.0] * 15]
CURVE = curve_of(log_of(NORM, [2.0] * 100, steps=range(0, 1000, 10)))
COLLAPSED = curve_of(log_of([*NORM, NAN, NAN, NAN], [2.0] * 103, steps=range(0, 1030, 10)))


@pytest.mark.parametrize(
    ("measures", "steps"),
    [
        (["typical_norm"], (0, 990)),
        (["decades_above_baseline"], (850, 990)),
        (["decades_fallen"], (990, 990)),
        (["early_spike_decades"], (80, 80)),
        (["late_spike_decades", "typical_norm"], (500, 510)),
        (["recovered_points"], (600, 600)),
        (["decades_fallen", "decades_above_baseline"], (850, 990)),
        (["decades_above_baseline", "late_spikes"], (500, 510)),
        (["late_spikes", "early_spike_decades"], (80, 80)),
        (["late_spikes", "late_nonfinite_share"], (600, 600)),
        ([], (0, 990)),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else None,
)
def test_the_most_telling_of_a_rule_s_measures_says_the_steps(measures: list[str], steps: tuple[int, int]) -> None:
    assert first_span([MEASURES[name].span for name in measures], CURVE) == steps


def test_a_collapse_is_told_before_anything_else() -> None:
    every = [measure.span for measure in MEASURES.values()]
    assert first_span(every, COLLAPSED) == (1000, 1020)


@pytest.mark.parametrize("span", [spans.early_spikes, spans.late_spikes])
def test_a_curve_without_spikes_is_told_as_a_whole(span: Span) -> None:
    assert first_span([span], curve_of(log_of(QUIET))) == (0, 99)


def test_without_a_judged_point_there_are_no_steps() -> None:
    shapeless = curve_of(log_of([NAN] * 4))
    assert first_span([spans.rise], shapeless) == (None, None)
    assert first_span([], curve_of(log_of(None, [1.0] * 9), None)) == (None, None)


def test_a_check_speaks_of_what_was_measured() -> None:
    rule = Rule("X1", "x", Severity.INFO, "summary", "message")
    spike = Condition("late_spike_decades", "why", above=0.6)
    unmeasured = Condition("spike_rate", "why", above=0.0, missing=Missing.PASS)
    assert evaluate(replace(rule, when=(unmeasured, spike)), CURVE).steps == (500, 510)
    assert evaluate(replace(rule, when=(unmeasured,)), CURVE).steps == (0, 990)
