"""What is kept of a long series: no spike and no NaN is lost, however many points there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradtrend.detect.judge import judge
from gradtrend.detect.outlines import kept_points
from gradtrend.detect.rules import load_rules
from gradtrend.model.words import Role
from tests.detect.runs import log_of

_VALUES = st.lists(st.sampled_from([0.0, 1.0, 2.5, 1e9, float("nan"), float("inf"), -3.0]), min_size=1, max_size=400)


@given(values=_VALUES, most=st.integers(1, 60), stride=st.integers(1, 9))
@settings(deadline=None)
def test_every_share_keeps_its_ends_and_what_is_not_finite(values: list[float], most: int, stride: int) -> None:
    steps = np.arange(len(values), dtype=np.int64) * stride
    series = np.array(values)
    kept = kept_points(steps, series, most)
    assert (np.diff(kept) > 0).all()
    assert len(kept) <= max(most, 2 * max(2, most) + 2)
    assert {kept[0], kept[-1]} == {0, len(values) - 1}
    finite = np.isfinite(series)
    for sought in (np.isnan(series), np.isinf(series)):
        if sought.any():
            assert np.flatnonzero(sought)[0] in kept
    if finite.any():
        assert series[kept][finite[kept]].max() == series[finite].max()
        assert series[kept][finite[kept]].min() == series[finite].min()


def test_one_spike_and_one_nan_in_a_million_are_kept() -> None:
    values = np.ones(1_000_000)
    values[[333_333, 612_345, 900_001]] = 4000, np.nan, np.inf
    kept = kept_points(np.arange(1_000_000), values, 2000)
    assert {333_333, 612_345, 900_001} <= set(kept.tolist())
    assert len(kept) <= 4002


def test_a_short_series_is_kept_whole() -> None:
    assert kept_points(np.arange(50), np.ones(50), 50).tolist() == list(range(50))


def test_steps_far_apart_keep_their_shape() -> None:
    """Of equal shares of the steps, not of the points: else the sparse end would be drawn in two points."""
    steps = np.concatenate([np.arange(100_000), 100_000 + 1000 * np.arange(1000)])
    kept = kept_points(steps, np.random.default_rng(1).normal(size=len(steps)), 400)
    assert (steps[kept] >= 100_000).sum() > 300


@pytest.mark.parametrize("points", [0, 200])
def test_outlines_are_made_only_where_asked_for(points: int) -> None:
    norms = [1.0 + 0.1 * (i % 7) for i in range(500)]
    report = judge(log_of(norms), load_rules(), points)
    outlines = [series.outline for series in report.series if series.role is Role.GRAD_NORM]
    assert outlines
    if not points:
        assert outlines == [None]
        return
    (outline,) = outlines
    assert outline is not None
    assert outline.band == pytest.approx((1.0, 1.6))
    assert len(outline.steps) == len(outline.values) <= 2 * points + 2
