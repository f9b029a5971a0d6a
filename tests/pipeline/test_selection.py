from __future__ import annotations

import pytest

from gradtrend.detect.rules import load_rules
from gradtrend.errors import ConfigError
from gradtrend.model.rule import Rule
from gradtrend.model.words import Severity
from gradtrend.pipeline.selection import SICK_RULES, near, parse_fail_on, rule_ids, split_list

RULES = tuple(
    Rule(rule_id, name, Severity.ERROR, "", "")
    for rule_id, name in (
        ("GT101", "exploding"),
        ("GT102", "vanishing"),
        ("GT401", "vanishing-layer"),
        ("GT501", "post-clip"),
    )
)


def test_lists_may_be_given_at_once_or_one_by_one() -> None:
    assert split_list(["GT101, GT5", "drift", ""]) == ("GT101", "GT5", "drift")


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["GT101"], {"GT101"}),
        (["gt1"], {"GT101", "GT102"}),
        (["vanishing"], {"GT102"}),
        (["Vanishing-Layer", "GT5"], {"GT401", "GT501"}),
        (["GT"], {rule.id for rule in RULES}),
        ([], set()),
    ],
)
def test_ids_beginnings_and_names(words: list[str], ids: set[str]) -> None:
    assert rule_ids(words, RULES, "--select") == ids


def test_every_unknown_word_is_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"--select: no rule 'vanish', 'G'") as caught:
        rule_ids(["vanish", "GT101", "G"], RULES, "--select")
    assert "vanishing" in (caught.value.hint or "")


def test_near_falls_back_to_the_list() -> None:
    assert near("xyzzy", RULES) == "`gradtrend rule` lists all rules."
    assert near("nevr", RULES, ("never",)) == "Did you mean never?"


def test_sick_is_every_shipped_rule_that_is_an_error_of_a_log() -> None:
    logs = {rule.id for rule in load_rules() if rule.severity is Severity.ERROR and rule.replay is None}
    assert logs == SICK_RULES


@pytest.mark.parametrize(
    ("text", "level", "ids"),
    [
        ("sick", None, SICK_RULES),
        ("Sick,GT501", None, SICK_RULES | {"GT501"}),
        ("warning, sick", Severity.WARNING, SICK_RULES),
        ("exploding", None, {"GT101"}),
    ],
)
def test_what_fail_on_names(text: str, level: Severity | None, ids: set[str]) -> None:
    assert parse_fail_on(text, RULES) == (level, ids)


def test_an_unknown_word_of_the_settings_is_told_by_its_key() -> None:
    with pytest.raises(ConfigError, match="fail-on: no rule 'sik'") as caught:
        parse_fail_on("sik", RULES, "fail-on")
    assert caught.value.hint == "Did you mean sick?"
