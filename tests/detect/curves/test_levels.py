"""Levels, smoothing and scatter of a curve."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gradtrend.detect.curves.levels import (
    LEAST_NOISE,
    end_window,
    levels_of,
    noise_of,
    smooth,
    spread,
    trailing_median,
    upper_level,
    window_of,
)


def local_level(y: np.ndarray) -> np.ndarray:
    return levels_of(y)[1]


def noise(y: np.ndarray) -> float:
    return noise_of(y, spread(y - local_level(y)))


curves = arrays(np.float64, st.integers(1, 80), elements=st.floats(-20, 20, allow_nan=False, width=32))


@given(st.integers(1, 100_000))
def test_windows_fit_into_the_log(points: int) -> None:
    assert 1 <= window_of(points) <= max(1, points // 4)
    assert 1 <= end_window(points) <= points


def test_a_level_of_a_long_log_is_a_tenth_and_its_end_half_a_percent() -> None:
    assert window_of(1000) == 100
    assert end_window(10_000) == 50
    assert (end_window(7), end_window(8)) == (1, 3)


@given(curves)
def test_trailing_median_is_the_median_of_each_full_window(y: np.ndarray) -> None:
    window = window_of(len(y))
    expected = [np.median(y[i : i + window]) for i in range(len(y) - window + 1)]
    assert trailing_median(y, window) == pytest.approx(expected)


@given(curves)
def test_the_local_level_is_the_median_of_a_point_s_neighbours(y: np.ndarray) -> None:
    half = 4  # nine points, in a log of up to 90
    expected = [np.median(y[max(0, i - half) : i + half + 1]) for i in range(len(y))]
    assert local_level(y) == pytest.approx(expected)


@pytest.mark.parametrize("n", [1000, 2345, 20_011])
def test_long_windows_are_taken_over_blocks_and_near_the_exact_median(n: int) -> None:
    y = np.sin(np.linspace(0, 7, n)) + np.random.default_rng(3).normal(0, 0.3, n)
    window = window_of(n)
    exact = np.median(np.lib.stride_tricks.sliding_window_view(y, window), axis=1)
    assert trailing_median(y, window) == pytest.approx(exact, abs=0.15)
    assert len(trailing_median(y, window)) == n - window + 1
    local = local_level(y)
    assert local.shape == (n,)
    assert local[window // 2 : n - window // 2 - 1] == pytest.approx(exact[: n - 2 * (window // 2) - 1], abs=0.15)


@pytest.mark.parametrize("n", [*range(1, 130), *range(970, 1060, 3), 1500, 5170, 20_011])
def test_both_levels_of_a_curve_have_all_their_points(n: int) -> None:
    y = np.random.default_rng(n).normal(0, 1, n)
    levels, local = levels_of(y)
    assert (levels == trailing_median(y, window_of(n))).all()
    assert local.shape == (n,)


def test_the_upper_level_reaches_over_an_edge_by_one_block() -> None:
    y = np.repeat([2.0, 0.0], [10_007, 9_993])
    upper = upper_level(local_level(y))
    assert (y <= upper).all()
    assert (upper[10_300:] == 0).all()
    short = local_level(y[9_800:10_200])
    assert upper_level(short) is short


def test_smoothing_takes_an_outlier_and_leaves_an_edge() -> None:
    assert smooth(np.array([0, 0, 5, 0, 0, 0.0])).max() == 0
    edge = np.array([0, 0, 0, 1, 1, 1.0])
    assert (smooth(edge) == edge).all()


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0])
def test_noise_is_the_scatter_s_standard_deviation(sigma: float) -> None:
    y = np.random.default_rng(0).normal(0, sigma, 2000)
    assert noise(y) == pytest.approx(sigma, rel=0.15)


@pytest.mark.parametrize("trend", [np.linspace(0, 6, 400), np.repeat([0.0, 3.0], 200)], ids=["slope", "step"])
def test_a_slope_or_a_step_is_no_noise(trend: np.ndarray) -> None:
    y = trend + np.random.default_rng(1).normal(0, 0.1, 400)
    assert noise(y) == pytest.approx(0.1, rel=0.25)


def test_a_quantised_log_is_not_without_noise() -> None:
    assert noise(np.zeros(50)) == LEAST_NOISE
    assert noise(np.zeros(2)) == LEAST_NOISE


@given(curves, st.floats(-6, 6))
def test_noise_does_not_depend_on_the_scale_of_the_norm(y: np.ndarray, decades: float) -> None:
    assert noise(y + decades) == pytest.approx(noise(y), abs=1e-6)


def test_one_outlier_does_not_change_the_spread() -> None:
    y = np.random.default_rng(2).normal(0, 1, 501)
    assert spread(np.append(y, 1e9)) == pytest.approx(spread(y), rel=0.02)
    assert math.isclose(spread(y), 1, rel_tol=0.1)
