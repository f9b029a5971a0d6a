"""Where a curve rises or falls for good, by how much and since when."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.detect.curves.shape import Shape, describe, judged_points
from tests.detect.runs import Values, series_of_values

NAN = math.nan


def shape_of(values: Values, steps: list[int] | None = None, ends_nonfinite: bool = False) -> Shape:
    shape = describe(series_of_values(values, steps), ends_nonfinite)
    assert shape is not None
    return shape


def noisy(values: Values, seed: int = 0, sigma: float = 0.05) -> list[float]:
    noise = np.random.default_rng(seed).normal(0, sigma, len(values))
    return [float(value * 10**n) for value, n in zip(values, noise, strict=True)]


def test_a_step_up() -> None:
    shape = shape_of(noisy([1.0] * 60 + [100.0] * 40))
    assert shape.rise.decades == pytest.approx(2, abs=0.15)
    assert (shape.rise.onset, shape.rise.points, shape.rise.held_from) == (60, 40, 60)
    assert shape.rise.beyond == pytest.approx(2, abs=0.2)
    assert shape.fall.decades <= 0.1


def test_a_fall_is_a_rise_turned_over() -> None:
    up = shape_of(noisy([1.0] * 60 + [100.0] * 40))
    down = shape_of([1 / value for value in noisy([1.0] * 60 + [100.0] * 40)])
    assert down.fall.decades == pytest.approx(up.rise.decades)
    assert (down.fall.onset, down.fall.points, down.fall.held_from) == (60, 40, 60)
    assert down.fall.beyond == pytest.approx(up.rise.beyond)


def test_the_onset_of_a_slow_rise_is_where_it_leaves_its_level() -> None:
    shape = shape_of(noisy([1.0] * 50 + [10 ** (i / 20) for i in range(50)], sigma=0.02))
    assert 50 <= shape.rise.onset <= 60


def test_what_came_back_is_neither() -> None:
    shape = shape_of(noisy([1.0] * 40 + [100.0] * 20 + [1.0] * 40))
    assert abs(shape.rise.decades) < 0.2
    assert shape.fall.decades == pytest.approx(2, abs=0.2)  # from its highest settled level, which was settled
    assert shape.fall.beyond < 0.2  # but it had been there before


def test_the_last_point_alone_counts_only_where_nan_follows() -> None:
    values = [*noisy([1.0] * 40), 5000.0]
    assert shape_of(values).rise.decades < 0.3
    assert shape_of(values, ends_nonfinite=True).rise.decades == pytest.approx(3.7, abs=0.2)
    assert shape_of(values, ends_nonfinite=True).rise.onset == 40


def test_a_rise_from_the_first_point_has_nothing_before_it() -> None:
    shape = shape_of([2.0**i for i in range(40)])
    assert shape.rise.onset <= 0.1 * shape.points
    assert shape_of([1.0, *[1e4] * 30]).rise.decades <= 0  # over at the second point: no level was left
    assert shape_of([1.0] * 20).rise.decades <= 0


def test_zeros_are_left_out_but_for_those_where_the_norm_went() -> None:
    alternating = [1.0, 0.0] * 20
    assert judged_points(series_of_values(alternating))[1].tolist() == [0.0] * 20
    ending = [1.0] * 20 + [0.0] * 10
    steps, _ = judged_points(series_of_values(ending))
    assert (len(steps), steps[-1]) == (30, 29)
    assert shape_of(ending).fall.decades == pytest.approx(3)


def test_there_is_no_shape_without_a_positive_number() -> None:
    for values in ([NAN, math.inf], [0.0, 0.0], [-1.0, -2.0], []):
        assert describe(series_of_values(values) if values else series_of_values([NAN]), False) is None


positive = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=120)


@given(positive, st.integers(-6, 6))
def test_scale_moves_levels_and_nothing_else(values: list[float], decades: int) -> None:
    one, other = shape_of(values), shape_of([value * 10.0**decades for value in values])
    assert other.baseline - one.baseline == pytest.approx(decades, abs=1e-6)
    assert other.end - one.end == pytest.approx(decades, abs=1e-6)
    assert other.rise.decades == pytest.approx(one.rise.decades, abs=1e-6)
    assert other.fall.decades == pytest.approx(one.fall.decades, abs=1e-6)
    assert other.noise == pytest.approx(one.noise, abs=1e-6)


@given(positive, st.integers(-1000, 10**9), st.integers(1, 500))
def test_steps_shifted_or_further_apart_change_nothing(values: list[float], first: int, every: int) -> None:
    one = shape_of(values)
    other = shape_of(values, [first + every * i for i in range(len(values))])
    assert (other.rise, other.fall, other.noise) == (one.rise, one.fall, one.noise)
    assert other.steps.tolist() == [first + every * i for i in range(len(values))]


@given(positive, st.booleans())
def test_indices_lie_within_the_curve(values: list[float], ends_nonfinite: bool) -> None:
    shape = shape_of(values, ends_nonfinite=ends_nonfinite)
    for change in (shape.rise, shape.fall):
        assert 0 <= change.onset <= shape.points
        assert 0 <= change.held_from <= shape.points
        assert 0 <= change.points <= shape.points
    assert shape.baseline <= shape.highest
