from __future__ import annotations

from dataclasses import replace

import pytest

from gradtrend.detect.rules import circumstances
from gradtrend.model.rule import EVIDENCE, REPLAY_NOTE, Action, Alternative, Condition, Hold, ReplayTopic, Rule, Shows
from gradtrend.model.words import Severity, Trend
from gradtrend.report.json.rule import rule_to_dict
from gradtrend.report.text.rule import rule_page, rule_table
from gradtrend.report.wording.style import Style

RULE = Rule(
    "GT101",
    "exploding",
    Severity.ERROR,
    "The norm climbs and does not come back.",
    "It rises.",
    help="First paragraph.\n\nSecond paragraph.",
    trend=Trend.EXPLODING,
    when=(Condition("decades_above_baseline", "Healthy runs stay below 0.6.", above=1.0, meaning="rise, in decades"),),
    hold=Hold(fraction=0.95),
    unless=("GT103",),
    actions=(Action("Lower the learning rate.", "lr_warming_up", {"lightly-train": "Lower model_args.lr."}),),
    blind="Growth by less than a decade.",
)
OTHER = Rule("GT504", "too-short", Severity.WARNING, "Too few points.", "", note="too-short", hold=Hold(points=3))


KNOWN = replace(
    RULE,
    id="GT799",
    actions=(Action("Filter the samples.", id="check-labels"),),
    shows=Shows(kinds=("speech",), signs=("ctc",), metrics=("ctc",)),
    threads=("https://example.org/1",),
)


def test_a_page_of_a_known_cause_shows_where_it_can_be_its_thread_and_the_ids_of_its_actions() -> None:
    lines = rule_page(KNOWN, Style()).splitlines()
    for line in (
        "  of frameworks of the kind speech, whose lines speak of ctc, with a metric like ctc",
        "  https://example.org/1",
        "  - check-labels: Filter the samples.",
    ):
        assert line in lines


def test_the_table_has_one_line_a_rule() -> None:
    assert rule_table([RULE, OTHER], Style()).splitlines() == [
        "GT101  exploding  error    The norm climbs and does not come back.",
        "GT504  too-short  warning  Too few points.",
    ]


def test_a_page_shows_limits_reasons_blind_spots_and_actions() -> None:
    lines = rule_page(RULE, Style()).splitlines()
    assert lines[0] == "GT101 exploding (error)"
    for line in (
        "  First paragraph.",
        "  Second paragraph.",
        "  grad_norm series, the run's total",
        "  - decades above baseline (rise, in decades) is above 1",
        "    why: Healthy runs stay below 0.6.",
        "  - the change holds to the end, for at least 95 % of the points",
        "  GT103",
        "  Growth by less than a decade.",
        "  - Lower the learning rate. [only when: lr warming up; then first]",
    ):
        assert line in lines


@pytest.mark.parametrize(
    ("when", "reason"),
    [
        (None, ""),
        ("no_lr", " [only when: no lr]"),
        ("low_precision", " [only when: low precision; then first]"),
    ],
)
def test_a_page_says_when_an_action_is_given(when: str | None, reason: str) -> None:
    assert f"  - Log it.{reason}" in rule_page(replace(RULE, actions=(Action("Log it.", when),)), Style()).splitlines()


def test_the_evidence_that_a_page_tells_apart_is_that_of_the_rules() -> None:
    assert set(circumstances.EVIDENCE) == EVIDENCE


def test_a_page_says_which_replayed_step_a_rule_is_for() -> None:
    rule = replace(RULE, note=REPLAY_NOTE, replay=ReplayTopic.PRECISION_RANGE)
    assert "  a replayed step: precision-range" in rule_page(rule, Style()).splitlines()


def test_alternatives_stand_in_groups() -> None:
    points, level, gain, fall = (Condition(name, "", below=1.0) for name in ("points", "level", "gain", "fall"))
    either = (Alternative("tiny", (level, gain)), Alternative("fell", (fall, gain)))
    rule = replace(RULE, when=(points,), alternatives=either, hold=Hold())
    lines = rule_page(rule, Style()).splitlines()
    start = lines.index("Fires when") + 1
    assert [line for line in lines[start:] if "why:" not in line][:7] == [
        "  - points is below 1",
        '  and all of "tiny":',
        "  - level is below 1",
        "  - gain is below 1",
        '  or all of "fell":',
        "  - fall is below 1",
        "  - gain is below 1",
    ]
    conditions = rule_to_dict(rule)["when"]
    named = [(condition["alternative"], condition["measure"]) for condition in conditions]
    assert named == [(None, "points"), ("tiny", "level"), ("tiny", "gain"), ("fell", "fall"), ("fell", "gain")]
    assert all(condition["case"] == condition["alternative"] for condition in conditions)


def test_a_page_leaves_out_what_a_rule_has_not() -> None:
    text = rule_page(OTHER, Style())
    assert "noticed while reading: too-short" in text
    assert "for at least 3 points" in text
    for title in ("What it means", "Silenced by", "Does not see", "Next actions"):
        assert title not in text


def test_as_dicts_with_the_keys_of_the_rule_files() -> None:
    found = rule_to_dict(RULE)
    assert found["when"] == [
        {
            "measure": "decades_above_baseline",
            "above": 1.0,
            "below": None,
            "alternative": None,
            "case": None,
            "missing": "skip",
            "why": "Healthy runs stay below 0.6.",
        }
    ]
    assert found["hold"] == {"points": None, "fraction": 0.95}
    assert found["actions"][0]["text_for"] == {"lightly-train": "Lower model_args.lr."}
    assert found["actions"][0]["id"] is None
    assert rule_to_dict(KNOWN)["actions"][0]["id"] == "check-labels"
    assert rule_to_dict(KNOWN)["threads"] == ["https://example.org/1"]
    assert rule_to_dict(KNOWN)["shows"] == {"frameworks": [], "kinds": ["speech"], "signs": ["ctc"], "metrics": ["ctc"]}
