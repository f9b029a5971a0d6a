"""Where a loss began, where it was best, where it ended, and from which step on it climbed."""

from __future__ import annotations

import numpy as np
import pytest

from gradtrend.detect.curves.divergence import Divergence, divergence_of
from tests.detect.runs import curve_of, log_of

FALLS = list(np.linspace(3.0, 1.5, 30))


def seen(values: list[float]) -> Divergence | None:
    series = curve_of(log_of(loss=values), "loss").series
    assert series is not None
    return divergence_of(series)


def onset(values: list[float]) -> int:
    found = seen(values)
    assert found is not None
    return found.onset


@pytest.mark.parametrize(
    ("climb", "first"),
    [
        ([4.0] * 30, 0),
        ([10.0 ** (i + 1) for i in range(30)], 0),
        ([2.0**i * 4 for i in range(30)], 0),
        ([*[8.0] * 27, 1.6, 8.0, 8.0], 0),
        ([*[8.0] * 29, 1.0], 0),
        ([900.0, 700.0, 9.0, 12.0, 950.0, 9e4, 8e5, 9e7, 9e9, 9e12], 4),
    ],
    ids=["a step", "decades", "doubles", "one low value near the end", "one low value at the end", "fell by decades"],
)
def test_the_onset_is_where_it_left_for_the_last_time(climb: list[float], first: int) -> None:
    assert abs(onset([*FALLS, *climb]) - (len(FALLS) + first)) <= 1


def test_a_loss_that_climbs_to_chance_and_stays_left_at_its_start() -> None:
    rng = np.random.default_rng(1)
    climbs = np.concatenate([np.linspace(6.91, 7.25, 20), np.linspace(7.25, 7.05, 180)]) + rng.normal(0, 0.005, 200)
    assert onset([6.9, *climbs]) <= 10


def test_any_sign_is_measured_by_the_same_levels() -> None:
    values = [2.0, *np.linspace(1.5, -3.0, 40), *[40.0] * 20]
    found = seen(values)
    assert found is not None
    assert (found.first, found.best, found.end) == (2.0, pytest.approx(-3.0, abs=0.5), 40.0)
    assert found.lost > 5


def test_three_values_show_no_level() -> None:
    assert seen([1.0, 2.0, 900.0]) is None


def test_few_values_before_a_climb_show_its_scatter() -> None:
    climbed, noisy = seen([3.1, 3.2, 7.0, 4.5, 7.4, 7.1]), seen([1.0, 6.0, 0.9, 7.0, 8.0, 7.0])
    assert climbed is not None
    assert noisy is not None
    assert climbed.sigmas > 20
    assert noisy.sigmas < 8


@pytest.mark.filterwarnings("error")
def test_a_climb_with_a_loss_of_nothing_in_it() -> None:
    assert onset([*FALLS, 900.0, 0.0, *[900.0] * 28]) in (len(FALLS), len(FALLS) + 1)


def test_a_loss_that_blew_up_at_once_left_its_first_value() -> None:
    """It comes near its start in mid-run, far above it: no level there is one that it left."""
    down = list(10 ** np.linspace(22, 1.6, 40))
    assert onset([18.0, 2580.0, *down, *[2e4] * 40]) == 1
