"""Fisher's exact test, and the least p that it can come to."""

from __future__ import annotations

import pytest
from scipy.stats import fisher_exact

from gradtrend.detect.contrast.tables import least_table_p, table_p
from gradtrend.model.many.contrast import Part


def test_a_lady_tasting_tea() -> None:
    """Fisher's own: all of four cups told is one of 70 ways, and its mirror."""
    assert table_p(Part(4, 4), Part(0, 4)) == pytest.approx(2 / 70)
    assert table_p(Part(3, 4), Part(1, 4)) == pytest.approx(34 / 70)


@pytest.mark.parametrize("runs", [3, 8, 21])
def test_the_least_is_the_least(runs: int) -> None:
    for sick in range(runs + 1):
        for inside in range(runs + 1):
            tables = [
                [[a, inside - a], [sick - a, runs - inside - sick + a]]
                for a in range(max(0, inside + sick - runs), min(inside, sick) + 1)
            ]
            least = min(fisher_exact(table)[1] for table in tables)
            assert least_table_p(inside, sick, runs) == pytest.approx(least, abs=1e-12)


def test_of_ten_thousand_runs() -> None:
    assert 0 < table_p(Part(60, 200), Part(1940, 9800)) < 0.01
    assert least_table_p(200, 2000, 10_000) < 1e-9
