from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gradtrend.detect.rules import limit_problems, limits_of, load_rules, with_limits
from gradtrend.errors import ConfigError
from gradtrend.model.rule import Alternative, Condition, Hold, Rule
from gradtrend.model.words import Severity

RULE = Rule(
    "MY1",
    "mine",
    Severity.ERROR,
    "",
    "",
    when=(
        Condition("noise", "why", above=4.0),
        Condition("band", "why", above=1.0),
        Condition("band", "why", below=9.0),
    ),
    alternatives=(
        Alternative("later", (Condition("rise", "why", above=1.0), Condition("gain", "why", below=0.1))),
        Alternative("from the start", (Condition("rise", "why", above=1.0), Condition("rise", "why", above=2.5))),
    ),
    hold=Hold(points=3),
)


def limited(**table: Any) -> Rule:
    (rule,) = with_limits([RULE], {"MY1": table}, "pyproject.toml")
    return rule


def test_a_limit_is_named_by_its_measure() -> None:
    condition = limited(noise=5).when[0]
    assert condition.above == 5.0
    assert condition.why == "Set in pyproject.toml (the rule's own limit is 4). why"


def test_a_measure_may_be_written_in_words() -> None:
    spaced = replace(RULE, when=(Condition("rise_over_noise", "", above=4.0),))
    (rule,) = with_limits([spaced], {"MY1": {"rise over noise": 5}})
    assert rule.when[0].above == 5.0


def test_one_of_several_ways_is_a_table() -> None:
    ways = {way.name: [one.above for one in way.when] for way in limited(later={"rise": 2}).alternatives}
    assert ways == {"later": [2.0, None], "from the start": [1.0, 2.5]}


def test_the_strictest_of_two_on_one_side_decides() -> None:
    """Both must hold: a limit below the stricter one would change nothing."""
    (_, start) = limited(**{"from the start": {"rise": 2.0}}).alternatives
    assert [one.above for one in start.when] == [2.0, 2.0]


def test_one_side_of_two_is_a_table() -> None:
    assert [(one.above, one.below) for one in limited(band={"below": 8}).when[1:]] == [(1.0, None), (None, 8.0)]


def test_a_hold() -> None:
    assert limited(hold={"points": 5}).hold == Hold(points=5)


def test_a_rule_is_named_by_its_name_too() -> None:
    (rule,) = with_limits([RULE], {"mine": {"gain": 0.2}})
    assert rule.alternatives[0].when[1].below == 0.2


def test_what_holds_for_every_way_is_named_by_the_measure_alone() -> None:
    both = Rule(
        "MY2", "both", Severity.ERROR, "", "",
        when=(Condition("rise", "", above=1.0),),
        alternatives=(Alternative("a", (Condition("rise", "", above=2.0),)),),
    )  # fmt: skip
    (rule,) = with_limits([both], {"MY2": {"rise": 1.5}})
    assert (rule.when[0].above, rule.alternatives[0].when[0].above) == (1.5, 2.0)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"noize": 1}, "MY1.noize: no limit of MY1; did you mean noise?"),
        ({"rise": 1}, 'MY1.rise: has several limits in MY1; name one: later.rise or "from the start".rise'),
        ({"band": 1}, "MY1.band: has a limit on both sides; give { above = ... } or { below = ... }"),
        ({"noise": {"below": 1}}, "MY1.noise.below: no side of this limit; it has above"),
        ({"noise": "x"}, "MY1.noise: must be a finite number, not 'x'"),
        ({"noise": float("nan")}, "MY1.noise: must be a finite number, not nan"),
        ({"noise": True}, "MY1.noise: must be a finite number, not True"),
        ({"noise": 10**5000}, "MY1.noise: must be a finite number, not a number of thousands of digits"),
        ({"noise": {}}, "MY1.noise: must be a number, not an empty table"),
        ({"later": 3}, "MY1.later: must be a table of limits, not 3"),
        ({"later": {"noise": 3}}, "MY1.later.noise: no limit of MY1; did you mean rise?"),
        ({"hold": 3}, "MY1.hold: must be a table, not 3"),
        ({"hold": {"points": 0}}, "MY1.hold.points: must be a whole number above 0, not 0"),
        ({"hold": {"fraction": 0.5}}, "MY1.hold.fraction: no limit of MY1; it has hold.points"),
    ],
)
def test_what_is_no_limit_is_refused_with_what_is(table: dict[str, Any], problem: str) -> None:
    assert limit_problems([RULE], {"MY1": table}) == [problem]


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        with_limits([RULE], {"MY1": {"noise": "x", "rise": 1}, "MY7": {}})
    assert len(caught.value.message.split("\n")) == 3


def _nested(name: str, value: float) -> dict[str, Any]:
    way, dot, measure = name.rpartition(".")
    return {way.strip('"'): {measure: value}} if dot else {name: value}


@pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: rule.id)
def test_each_limit_of_the_shipped_rules_can_be_set(rule: Rule) -> None:
    for name in limits_of(rule):
        if "hold" not in name:
            problems = limit_problems([rule], {rule.id: _nested(name, 0.123)})
            assert [one for one in problems if "both sides" not in one] == []
