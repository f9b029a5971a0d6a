from __future__ import annotations

import pytest

from gradtrend.errors import ConfigError
from gradtrend.model.rule import Rule
from gradtrend.model.words import Severity
from gradtrend.pipeline.selection import near, rule_ids, split_list

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
