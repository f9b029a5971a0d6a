from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from gradtrend.report.text.sparkline import fit, sparkline
from gradtrend.report.wording.style import Style

_VALUES = st.lists(st.floats(), max_size=200)


def test_height_is_logarithmic() -> None:
    assert sparkline([1, 10, 100, 1000, 1e4, 1e5, 1e6, 1e7], Style()) == "▁▂▃▄▅▆▇█"


def test_noise_looks_flat() -> None:
    assert set(sparkline([1.0, 1.1, 0.9, 1.05], Style())) <= {"▄", "▅"}


def test_zero_is_lowest_and_non_finite_is_marked() -> None:
    assert sparkline([0.0, 1.0, 1e3, math.nan, math.inf, -math.inf], Style()) == "▁▁█✕✕✕"
    assert sparkline([0.0, 1.0, 1e3, math.nan], Style(unicode=False)) == "__#x"


def test_nothing_but_nan() -> None:
    assert sparkline([math.nan, math.nan], Style()) == "✕✕"
    assert sparkline([], Style()) == ""


@given(_VALUES)
def test_one_character_a_value(values: list[float]) -> None:
    assert len(sparkline(values, Style())) == len(values)


@given(_VALUES, st.integers(1, 80))
def test_fit_keeps_peaks_and_non_finite(values: list[float], width: int) -> None:
    fitted = fit(values, width)
    assert len(fitted) == min(len(values), width)
    assert any(map(math.isfinite, values)) >= any(map(math.isfinite, fitted))
    assert all(map(math.isfinite, values)) == all(map(math.isfinite, fitted))
    if values and all(map(math.isfinite, values)):
        assert max(map(abs, fitted)) == max(map(abs, values))
