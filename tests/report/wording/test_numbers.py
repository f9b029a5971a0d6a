from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.report.wording.numbers import number, plural, share, steps


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (412, "412"),
        (99999, "99999"),
        (0.9, "0.9"),
        (0.123456, "0.123"),
        (12.3456, "12.3"),
        (123.456, "123"),
        (0.00123456, "0.00123"),
        (0.000123456, "1.23e-4"),
        (99960.5, "1e5"),
        (320000.0, "3.2e5"),
        (1.511e23, "1.51e23"),
        (-12.5, "-12.5"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "NaN"),
    ],
)
def test_number(value: float, text: str) -> None:
    assert number(value) == text


@given(st.floats(-1e308, 1e308))
def test_a_number_reads_back_within_half_a_percent(value: float) -> None:
    assert float(number(value)) == pytest.approx(value, rel=5.01e-3)


@pytest.mark.parametrize(("value", "text"), [(1.0, "1.00"), (0.999, "0.99"), (0.29, "0.29"), (0.0, "0.00")])
def test_only_certainty_is_shown_as_certainty(value: float, text: str) -> None:
    assert share(value) == text


def test_plural_and_steps() -> None:
    assert (plural(1, "step"), plural(0, "step")) == ("1 step", "0 steps")
    assert steps(None, None) == ""
    assert steps(5, None) == steps(5, 5) == "step 5"
    assert steps(5, 9) == "steps 5 to 9"
    assert steps(None, 9) == "up to step 9"
