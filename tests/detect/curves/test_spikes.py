"""Short excursions that came back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.detect.curves.levels import levels_of
from gradtrend.detect.curves.spikes import SPIKE_DECADES, Spike, find_spikes


def spikes_of(y: np.ndarray) -> tuple[Spike, ...]:
    return find_spikes(y, levels_of(y)[1])


def curve(n: int = 100, **peaks: float) -> np.ndarray:
    """Quiet noise with a point lifted (`at40=2.0`: two decades at index 40)."""
    y = np.random.default_rng(0).normal(0, 0.03, n)
    for name, height in peaks.items():
        y[int(name.removeprefix("at"))] += height
    return y


def test_one_spike_is_found_where_it_is() -> None:
    (spike,) = spikes_of(curve(at40=1.0, at41=2.0, at42=0.8))
    assert (spike.first, spike.last, spike.peak) == (40, 42, 41)
    assert spike.decades == pytest.approx(2.0, abs=0.15)
    assert spike.beyond == pytest.approx(2.0, abs=0.2)
    assert spike.sigmas > 20


def test_near_ones_are_one_and_far_ones_two() -> None:
    assert len(spikes_of(curve(200, at80=1.0, at83=1.0))) == 1
    assert len(spikes_of(curve(200, at80=1.0, at120=1.0))) == 2


@pytest.mark.parametrize(
    "y",
    [curve(at0=2.0), curve(at99=2.0), curve(at97=2.0), curve(at40=0.5), curve(7, at3=2.0)],
    ids=["first", "last", "not back", "low", "short log"],
)
def test_what_is_no_spike(y: np.ndarray) -> None:
    assert spikes_of(y) == ()


@pytest.mark.parametrize("edge", [9_000, 10_007, 10_101])
@pytest.mark.parametrize("height", [2.0, -2.0])
def test_an_edge_in_a_long_log_is_no_spike(edge: int, height: float) -> None:
    y = curve(20_000)
    y[edge:] += height
    assert spikes_of(y) == ()
    y[15_000] += 2.0
    assert [spike.first for spike in spikes_of(y)] == [15_000]


def test_heavy_tails_are_no_spikes() -> None:
    y = np.random.default_rng(1).normal(0, 0.4, 500)
    y[200] = 1.2
    assert spikes_of(y) == ()


def test_a_bump_on_the_way_down_does_not_stand_above_what_was_before() -> None:
    y = np.concatenate([np.linspace(2, 0, 30), np.zeros(70)]) + curve()
    y[24] += 1.0
    (spike,) = spikes_of(y)
    assert spike.beyond < 0


@given(st.lists(st.floats(-5, 5), min_size=0, max_size=150), st.floats(-6, 6))
def test_spikes_do_not_depend_on_scale_and_stand_above_the_limit(values: list[float], decades: float) -> None:
    y = np.round(np.array(values), 3)
    spikes = spikes_of(y)
    assert [(s.first, s.last) for s in spikes] == [(s.first, s.last) for s in spikes_of(y + round(decades))]
    for spike in spikes:
        assert 0 < spike.first <= spike.peak <= spike.last < len(y) - 3
        assert spike.decades > SPIKE_DECADES
