"""SECURITY.md names tests that there are."""

from __future__ import annotations

import re

import pytest

from tests.places import ROOT

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)
PROMISES = [line for line in PAGE.split("\n## ")[1].splitlines() if re.match(r"\| [A-Z`]", line)]


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_named_test_exists(file: str, test: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f"\ndef {test or 'test_'}" in text


def test_each_promise_names_a_test() -> None:
    assert len(PROMISES) > 10
    assert [line for line in PROMISES if not re.search(r"`tests/[\w/]+\.py", line)] == []
