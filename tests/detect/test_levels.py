"""Levels, smoothing and scatter of a curve."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gradtrend.detect.levels import (
    LEAST_NOISE,
    centred_median,
    end_window,
    noise_of,
    smooth,
    spread,
    trailing_median,
    window_of,
)

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


@given(curves, st.sampled_from([3, 5, 9]))
def test_centred_median_of_each_point_s_neighbours(y: np.ndarray, window: int) -> None:
    half = window // 2
    expected = [np.median(y[max(0, i - half) : i + half + 1]) for i in range(len(y))]
    assert centred_median(y, window) == pytest.approx(expected)


def test_smoothing_takes_an_outlier_and_leaves_an_edge() -> None:
    assert smooth(np.array([0, 0, 5, 0, 0, 0.0])).max() == 0
    edge = np.array([0, 0, 0, 1, 1, 1.0])
    assert (smooth(edge) == edge).all()


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0])
def test_noise_is_the_scatter_s_standard_deviation(sigma: float) -> None:
    y = np.random.default_rng(0).normal(0, sigma, 2000)
    assert noise_of(y) == pytest.approx(sigma, rel=0.15)


@pytest.mark.parametrize("trend", [np.linspace(0, 6, 400), np.repeat([0.0, 3.0], 200)], ids=["slope", "step"])
def test_a_slope_or_a_step_is_no_noise(trend: np.ndarray) -> None:
    y = trend + np.random.default_rng(1).normal(0, 0.1, 400)
    assert noise_of(y) == pytest.approx(0.1, rel=0.25)


def test_a_quantised_log_is_not_without_noise() -> None:
    assert noise_of(np.zeros(50)) == LEAST_NOISE
    assert noise_of(np.zeros(2)) == LEAST_NOISE


@given(curves, st.floats(-6, 6))
def test_noise_does_not_depend_on_the_scale_of_the_norm(y: np.ndarray, decades: float) -> None:
    assert noise_of(y + decades) == pytest.approx(noise_of(y), abs=1e-6)


def test_one_outlier_does_not_change_the_spread() -> None:
    y = np.random.default_rng(2).normal(0, 1, 501)
    assert spread(np.append(y, 1e9)) == pytest.approx(spread(y), rel=0.02)
    assert math.isclose(spread(y), 1, rel_tol=0.1)
