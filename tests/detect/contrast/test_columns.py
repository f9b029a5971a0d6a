"""What of the values is the same, and what is a number."""

from __future__ import annotations

import math
import time

import pytest

from gradtrend.detect.contrast.columns import ABSENT, as_number, columns_of
from gradtrend.model.runlog import Scalar


def codes(*values: Scalar) -> list[int]:
    (column,) = columns_of([{"x": value} for value in values])
    return column.codes.tolist()


def test_a_number_is_the_same_however_spelt() -> None:
    assert codes(0.1, "0.1", "1e-1", " .1 ", 0.10) == [0] * 5
    assert codes(1, 1.0, "1", True, "true", "True", False) == [0, 0, 0, 1, 1, 1, 2]
    assert codes(None, "None", "null", "", 0, -0.0, "-0") == [0, 0, 0, 1, 2, 2, 2]
    assert codes(2, 1, 2.0) == codes("b", "a", "b") == [0, 1, 0]


def test_what_a_run_has_not() -> None:
    (column,) = columns_of([{}, {"x": None}, {}])
    assert column.codes.tolist() == [ABSENT, 0, ABSENT]
    assert column.present.tolist() == [False, True, False]


def test_nan_has_no_place_among_numbers_and_infinity_has() -> None:
    assert codes(math.nan, 1.0, math.nan, "nan", math.inf, "inf", "Infinity") == [0, 1, 0, 0, 2, 2, 2]
    (column,) = columns_of([{"x": value} for value in (math.nan, 1.0, math.inf)])
    assert math.isnan(column.numbers[0])
    assert column.numbers[1:].tolist() == [1.0, math.inf]


@pytest.mark.parametrize("text", ["1_000", "0x1f", "١٢", "1e", "", "1,5", "nan", "infinite", "9" * 100, "1 2"])
def test_text_that_is_no_number(text: str) -> None:
    assert as_number(text) is None


def test_a_whole_number_beyond_any_float() -> None:
    assert codes(10**400, 10**400, 10**5000, 3) == [0, 0, 1, 2]


def test_names_that_each_run_has_of_its_own_cost_no_table_of_all() -> None:
    runs: list[dict[str, Scalar]] = [{f"{i}/{j}": j for j in range(100)} | {"lr": 0.1} for i in range(1000)]
    start = time.process_time()
    names = [column.name for column in columns_of(runs)]
    assert len(names) == 2000
    assert "lr" in names
    assert time.process_time() - start < 5
