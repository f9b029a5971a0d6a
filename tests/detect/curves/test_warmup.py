"""Where the warm-up of the learning rate ends."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.detect.curves.warmup import early_until, warmup_end
from tests.detect.runs import Values, curve_of, log_of


def end_of(rates: Values, steps: list[int] | None = None) -> int | None:
    return warmup_end(curve_of(log_of(lr=rates, steps=steps), None).run.lr)


LINEAR = [min(1.0, (i + 1) / 20) * 1e-3 for i in range(100)]


def test_a_linear_climb_ends_at_its_peak() -> None:
    assert end_of(LINEAR) == 19
    assert end_of(LINEAR, [10 * i for i in range(100)]) == 190


def test_a_climb_and_a_cosine_after_it() -> None:
    cosine = [1e-3 * (1 + math.cos(math.pi * i / 80)) / 2 for i in range(80)]
    assert end_of(LINEAR[:20] + cosine) in (18, 19)


@pytest.mark.parametrize(
    "rates",
    [
        [1e-3] * 50,
        [1e-3 * 0.97**i for i in range(50)],
        [1e-4] * 30 + [1e-3] * 30,
        [1e-3, 1e-4] * 20,
        [0.0] * 20,
        [math.nan] * 20,
        [1e-4, 1e-3],
    ],
    ids=["constant", "decay", "switch", "cyclic", "zero", "not finite", "two points"],
)
def test_what_is_no_warmup(rates: Values) -> None:
    assert end_of(rates) is None


def test_without_a_rate_there_is_none() -> None:
    assert warmup_end(None) is None


@given(st.floats(1e-8, 1e3))
def test_warmup_does_not_depend_on_the_size_of_the_rate(scale: float) -> None:
    assert end_of([rate * scale for rate in LINEAR]) == 19


def test_early_is_a_share_of_the_run_or_half_as_long_again_as_the_warmup() -> None:
    assert early_until(0, 1000, None) == pytest.approx(150)
    assert early_until(0, 1000, 400) == pytest.approx(600)
    assert early_until(0, 1000, 10) == pytest.approx(150)
    assert early_until(500, 1500, 900) == pytest.approx(500 + 1.5 * 400)
