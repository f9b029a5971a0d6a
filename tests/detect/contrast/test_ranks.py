"""Mann-Whitney's U test: against all ways to choose the sick runs, against scipy, and a case worked by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, rankdata

from gradtrend.detect.contrast import ranks
from gradtrend.detect.contrast.ranks import least_rank_p, rank_p


def mask(size: int, sick: list[int]) -> np.ndarray:
    found = np.zeros(size, dtype=bool)
    found[sick] = True
    return found


def by_enumeration(values: np.ndarray, sick: np.ndarray) -> tuple[float, float]:
    """The p and the least one that any choice of as many sick runs comes to."""
    order = rankdata(values)
    chosen = combinations(range(values.size), int(sick.sum()))
    sums = np.array([order[list(which)].sum() for which in chosen])

    def p(total: float) -> float:
        return min(1.0, 2 * min((sums <= total + 1e-9).mean(), (sums >= total - 1e-9).mean()))

    return p(order[sick].sum()), min(p(total) for total in sums)


@pytest.mark.parametrize("seed", range(60))
def test_exact_with_and_without_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(4, 12))
    values = rng.integers(0, rng.integers(2, 20), size).astype(float)
    sick = mask(size, list(rng.choice(size, rng.integers(1, size), replace=False)))
    p, least = by_enumeration(values, sick)
    assert rank_p(values, sick) == pytest.approx(p, abs=1e-12)
    assert least_rank_p(values, int(sick.sum())) == pytest.approx(least, abs=1e-12)


def test_by_hand() -> None:
    """The three largest of eight are sick: one of 56 choices, and its mirror."""
    assert rank_p(np.arange(8.0), mask(8, [5, 6, 7])) == pytest.approx(2 / 56)
    assert rank_p(np.array([1, 1, 1, 1, 1, 2, 2, 2.0]), mask(8, [5, 6, 7])) == pytest.approx(2 / 56)
    assert rank_p(np.ones(8), mask(8, [5, 6, 7])) == 1.0


def test_as_scipy_without_ties_and_near_it_where_both_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    for size, ill in ((15, 4), (40, 10), (60, 12)):
        values, sick = rng.normal(size=size), mask(size, list(range(ill)))
        values[:ill] += 1
        exact = mannwhitneyu(values[sick], values[~sick], method="exact").pvalue
        assert rank_p(values, sick) == pytest.approx(exact, rel=1e-9)
    counted = rank_p(values.round(1), sick)
    monkeypatch.setattr(ranks, "_MOST_WORK", 0)
    assert rank_p(values.round(1), sick) == pytest.approx(counted, rel=0.15)


def test_infinity_is_the_largest() -> None:
    assert rank_p(np.array([1, 2, 3, 4, 5, 6, np.inf, np.inf]), mask(8, [5, 6, 7])) == pytest.approx(2 / 56)


@pytest.mark.parametrize(("runs", "ill", "at_most"), [(10_000, 3, 1.3e-11), (4000, 5, 1e-11), (2000, 2, 1.1e-6)])
def test_few_sick_among_many(runs: int, ill: int, at_most: float) -> None:
    """Those with the largest values, with which the normal approximation says 0.0027, 1e-4 and 0.014."""
    values = np.arange(float(runs))
    for sick in (values >= runs - ill, values < ill):
        assert least_rank_p(values, ill) * 0.99 <= rank_p(values, sick) <= at_most
        assert rank_p(values, ~sick) == pytest.approx(rank_p(values, sick))


@pytest.mark.parametrize("seed", range(12))
def test_counted_by_transform_as_by_shifts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(150, 400))
    ill = int(rng.integers(1, int((5 * size) ** 0.5) + 1))
    sick = mask(size, list(rng.choice(size, ill, replace=False)))
    values = rng.choice(rng.choice([3, 10, 1000]), size) + 0.3 * sick * rng.integers(0, 1000)
    monkeypatch.setattr(ranks, "_MOST_WORK", 10**12)
    counted = rank_p(values, sick)
    monkeypatch.setattr(ranks, "_MOST_WORK", -1)
    rounded = rank_p(values, sick)
    assert rounded == pytest.approx(counted, rel=0.5, abs=1e-11)  # the ranks are rounded to a hundred or two
    ranks._odds.cache_clear()
    monkeypatch.setattr(ranks, "_MOST_PRODUCTS", 10**9)
    assert rank_p(values, sick) == pytest.approx(counted, rel=1e-6, abs=1e-11)
    ranks._odds.cache_clear()


@pytest.mark.parametrize("ill", [3, 12, 40])
@pytest.mark.parametrize("different", [2000, 40, 0])
def test_by_chance_small_ones_are_as_rare_as_is_said(ill: int, different: int) -> None:
    """Of 2,000 runs, whose values all differ, come from a short list, or are nearly all zero."""
    rng = np.random.default_rng(ill)
    values = rng.permutation(2000) % different if different else np.where(rng.random(2000) < 0.88, 0, rng.random(2000))
    values = values.astype(float)
    ps = np.array([rank_p(values, mask(2000, list(rng.choice(2000, ill, replace=False)))) for _ in range(3000)])
    assert (ps <= 0.05).mean() <= 0.05 + 0.012  # three standard deviations
    assert (ps <= 0.002).mean() <= 0.002 + 0.003
    if different == 2000:
        assert (ps <= 0.05).mean() >= 0.05 - 0.012
