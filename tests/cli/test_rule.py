from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from gradtrend.detect.rules import load_rules

Call = Callable[..., Result]


def test_without_an_id_every_rule_has_a_line(call: Call) -> None:
    done = call("rule")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.output.splitlines()] == [rule.id for rule in load_rules(None)]


@pytest.mark.parametrize("name", ["GT101", "gt101", "exploding"])
def test_a_rule_by_id_or_name_shows_its_limits(call: Call, name: str) -> None:
    done = call("rule", name)
    assert done.exit_code == 0
    assert done.output.startswith("GT101 exploding (error)\n")
    for title in ("What it means", "Fires when", "Does not see", "Next actions"):
        assert f"\n{title}" in done.output


def test_each_condition_says_what_its_measure_is(call: Call) -> None:
    page = " ".join(call("rule", "GT101").output.split())
    measure = "decades above baseline (rise of the end over the lowest level, in decades)"
    assert f"- {measure} is above 1 why: " in page
    assert "(improvement of the loss since the rise, as a share) is below 0.05" in page


def test_every_rule_has_a_page_and_every_limit_a_reason(call: Call) -> None:
    for rule in load_rules(None):
        done = call("rule", rule.id, "--format", "json")
        loaded = json.loads(done.output)
        assert loaded["id"] == rule.id
        assert loaded["summary"]
        assert all(condition["why"].strip() for condition in loaded["when"])


@pytest.mark.parametrize(("name", "hint"), [("GT1011", "GT101"), ("explode", "exploding"), ("xyzzy", "gradtrend rule")])
def test_an_unknown_rule_exits_2_with_what_comes_near(call: Call, name: str, hint: str) -> None:
    done = call("rule", name)
    assert done.exit_code == 2
    assert name in done.stderr
    assert hint in done.stderr
