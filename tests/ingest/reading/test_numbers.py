"""Numbers as text, and those of which the end may be missing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.ingest.reading.numbers import could_be_cut, parse_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", "1.5"), (" 2 ", "2.0"), ("1e-3", "0.001"), ("nan", "nan"), ("-NaN", "nan"), ("inf", "inf"),
        ("-Infinity", "-inf"), ("1.#IND", "nan"), ("-1.#INF", "-inf"), ("nan(ind)", "nan"),
        ("1_000", "None"), ("", "None"), ("two", "None"), ("1,5", "None"), ("0x10", "None"),
    ],
)  # fmt: skip
def test_a_number_in_text(text: str, value: str) -> None:
    assert repr(parse_number(text)) == value


@pytest.mark.parametrize(
    ("cell", "others", "cut"),
    [
        ("12", ["123474.7", "123475.7"], True),
        ("123.", ["123.4", "125.5"], True),
        ("3.5", ["3.5e-05", "4.1e-05"], True),
        ("1e-0", ["1e-05", "3e-06"], True),
        ("2.12", ["2.1231", "1.2342"], True),
        ("1,2", ["1,25", "1,31"], True),
        ("0.00012", ["9.8e-05", "0.0001"], False),
        ("1e-7", ["3e-7", "0.5"], False),
        ("0.5", ["0.5", "0.25"], False),
        ("17", ["18", "19"], False),
        ("5", ["1", "12"], False),
        ("nan", ["1.5"], False),
        ("1.5e-", ["1.5"], True),
        ("", ["1.5"], True),
        ("", ["1.5", ""], False),
        ("12", ["1234", "1301", "1275"], True),
        ("98", ["1234", "1301"], False),
        ("1.5", [], False),
        ("1.5", ["nan", "text"], False),
    ],
)
def test_what_may_be_cut(cell: str, others: Sequence[str], cut: bool) -> None:
    assert could_be_cut(cell, others) is cut


@given(st.lists(st.floats(0.01, 1e4).map(lambda value: f"{value:.4f}"), min_size=2), st.integers(1, 3))
def test_numbers_of_one_width_are_cut_wherever_they_are_shorter(cells: list[str], missing: int) -> None:
    assert could_be_cut(cells[-1][:-missing], cells[:-1])
    assert not could_be_cut(cells[-1], cells[:-1])


@given(st.lists(st.floats(1e-3, 1e6), min_size=2))
def test_a_whole_number_among_its_like_is_believed(values: list[float]) -> None:
    *others, last = map(repr, values)
    shortest = min(len(text.partition(".")[2]) for text in others)
    assert could_be_cut(last, others) is (len(last.partition(".")[2]) < shortest)
