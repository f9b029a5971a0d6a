from __future__ import annotations

import pytest

from gradtrend.replay.subject.failure import first_line, named


@pytest.mark.parametrize(
    ("error", "line", "whole"),
    [
        (ValueError("shapes differ\nsecond line"), "shapes differ", "ValueError: shapes differ"),
        (RuntimeError("\n  indented"), "indented", "RuntimeError: indented"),
        (AssertionError(), "AssertionError", "AssertionError"),
        (AssertionError("\n"), "AssertionError", "AssertionError"),
        (KeyError("x" * 500), "'" + "x" * 199, "KeyError: '" + "x" * 199),
    ],
)
def test_an_error_in_one_line(error: Exception, line: str, whole: str) -> None:
    assert (first_line(error), named(error)) == (line, whole)
