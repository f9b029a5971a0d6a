"""How far a loss came."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.detect.curves.loss import (
    batch_loss,
    descent_of,
    furthest_of,
    loss_scatter,
    masked_steps,
    without_masked,
)
from gradtrend.detect.curves.series import Series
from gradtrend.model.words import Role
from tests.detect.runs import Values


def loss_gain(loss: Series | None, *windows: tuple[int, int]) -> float | None:
    descent = descent_of(loss)
    return None if descent is None else descent.gain(*windows)


def loss_of(values: Values, name: str = "loss") -> Series:
    return Series(name, Role.LOSS, None, np.arange(len(values)), np.array(values, dtype=float))


def noisy(values: Values, sigma: float, seed: int = 0) -> list[float]:
    return list(np.array(values) + np.random.default_rng(seed).normal(0, sigma, len(values)))


def test_the_gain_is_a_share_of_where_it_was() -> None:
    falling = loss_of(list(np.linspace(4, 1, 100)))
    assert loss_gain(falling, (0, 2)) == pytest.approx(0.74, abs=0.02)
    assert loss_gain(falling, (50, 55)) == pytest.approx(0.58, abs=0.03)


def test_the_largest_of_several_windows_counts() -> None:
    falling = loss_of(list(np.linspace(4, 1, 100)))
    assert loss_gain(falling, (50, 55), (0, 2)) == loss_gain(falling, (0, 2))


def test_scatter_is_no_gain() -> None:
    assert loss_gain(loss_of(noisy([2.0] * 100, 0.3)), (0, 9)) == 0.0


def test_worse_is_negative() -> None:
    gain = loss_gain(loss_of([1.0] * 50 + [3.0] * 50), (0, 9))
    assert gain == pytest.approx(-2.0)


@pytest.mark.parametrize(
    "loss",
    [None, loss_of([]), loss_of([1.0]), loss_of([-1.0, 1.0, 2.0]), loss_of([0.0] * 9 + [1.0]), loss_of([math.nan] * 5)],
    ids=["none", "empty", "one point", "below zero", "mostly zero", "not finite"],
)
def test_where_a_loss_says_nothing_of_progress(loss: Series | None) -> None:
    assert loss_gain(loss, (0, 2)) is None


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=60), st.sampled_from([0.01, 0.5, 8.0, 1000.0]))
def test_the_gain_does_not_depend_on_the_unit_of_the_loss(values: list[float], factor: float) -> None:
    one, other = (loss_gain(loss_of([v * f for v in values]), (0, 5)) for f in (1.0, factor))
    assert one is not None
    assert other is not None
    # At the edge of its own scatter rounding may decide between 0 and the gain.
    assert other == pytest.approx(one, rel=1e-6, abs=1e-9) or 0.0 in (one, other)
    assert one <= 1


def test_masked_is_an_exact_zero_beside_a_nonfinite_norm() -> None:
    norm = Series("n", Role.GRAD_NORM, None, np.arange(5), np.array([1, math.nan, math.inf, math.nan, 1.0]))
    loss = loss_of([2.0, 0.0, 0.0, 1.9, 0.0])
    assert masked_steps(loss, norm).tolist() == [False, True, True, False, False]
    assert without_masked(loss, norm).finite.tolist() == [True, False, False, True, True]


def test_a_loss_without_masked_steps_stays_as_it_is() -> None:
    norm = Series("n", Role.GRAD_NORM, None, np.arange(2), np.array([1.0, math.nan]))
    loss = loss_of([2.0, 1.9])
    assert without_masked(loss, norm) is loss


def test_the_batch_loss_is_that_of_the_steps_with_a_norm() -> None:
    norm = Series("n", Role.GRAD_NORM, None, np.arange(50), np.ones(50))
    batch = loss_of([1.0] * 50, "loss")
    evaluated = Series("train/loss", Role.LOSS, None, np.arange(90) * 50, np.ones(90))
    assert batch_loss((evaluated, batch), (norm,)) is batch
    assert batch_loss((batch, evaluated), ()) is evaluated
    assert batch_loss((), (norm,)) is None


def test_the_furthest_losses_reach_the_end_or_nearly() -> None:
    short, to_the_end = loss_of([1.0] * 50, "a"), loss_of([1.0] * 1000, "b")
    nearly = Series("c", Role.LOSS, None, np.arange(34) * 30, np.ones(34))
    assert furthest_of((short, to_the_end, nearly)) == (to_the_end, nearly)
    assert furthest_of(()) == ()


@pytest.mark.parametrize("negative", [-5e-9, -40.0])
def test_one_value_does_not_switch_the_loss_off(negative: float) -> None:
    values = noisy([2.0] * 300, 0.02)
    assert descent_of(loss_of([*values[:100], negative, *values[100:]])) is not None
    assert descent_of(loss_of([*values[:100], *[-1.0] * 30, *values[100:]])) is None


def test_scatter_is_relative() -> None:
    values = noisy([10.0] * 500, 1.0)
    scatter = loss_scatter(loss_of(values))
    assert scatter == pytest.approx(0.164, abs=0.02)  # 1.645 sigma of a tenth
    assert loss_scatter(loss_of([v * 7 for v in values])) == pytest.approx(scatter)
    assert loss_scatter(loss_of([-1.0, 1.0, 1.0])) is None
    assert loss_scatter(loss_of([math.nan])) is None
