"""Counters that start again every epoch become steps of the whole run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.ingest.reading import POINTS_SCHEMA
from gradtrend.ingest.reading.counters import UNKNOWN, whole_run_steps
from gradtrend.ingest.runs.series.steps import by_epoch_column


def steps(epoch: list[int], counter: list[int], total: list[int] | int = UNKNOWN, **options: bool) -> list[int]:
    totals = [total] * len(counter) if isinstance(total, int) else total
    arrays = [np.array(values, dtype=np.int64) for values in (epoch, counter, totals)]
    return whole_run_steps(*arrays, **options).tolist()


def test_a_counter_of_the_whole_run_is_left_alone() -> None:
    assert steps([1, 1, 2, 2], [5, 10, 15, 20]) == [5, 10, 15, 20]
    assert steps([UNKNOWN] * 3, [1, 2, 3], 100) == [1, 2, 3]


def test_a_restart_with_the_epoch_counts_on() -> None:
    assert steps([1, 1, 2, 2], [10, 20, 10, 20]) == [10, 20, 30, 40]
    assert steps([0, 0, 1, 1], [0, 1, 0, 1], 2, certain=True) == [0, 1, 2, 3]


def test_an_excerpt_of_a_late_epoch_counts_from_the_run_s_start_where_the_format_says_so() -> None:
    assert steps([12, 12], [700, 750], 3953, certain=True) == [11 * 3953 + 700, 11 * 3953 + 750]
    assert steps([24, 25], [1250, 0], 1251, certain=True, zero_based=True) == [24 * 1251 + 1250, 25 * 1251]


def test_restarts_without_an_epoch_count_only_after_the_end_was_reached() -> None:
    assert steps([UNKNOWN] * 4, [50, 100, 50, 100], 100) == [50, 100, 150, 200]
    assert steps([UNKNOWN] * 4, [10, 20, 10, 20], 100) == [10, 20, 10, 20]  # a resumed run
    assert steps([UNKNOWN] * 3, [100, 100, 100], 100) == [100, 200, 300]
    assert steps([UNKNOWN] * 3, [99, 100, 100], 100, redrawn=True) == [99, 100, 100]


def test_a_row_with_only_an_epoch_stands_at_its_end() -> None:
    assert steps([35, 35, 35], [83, 166, UNKNOWN], [332, 332, UNKNOWN], certain=True) == [11371, 11454, 11620]


@given(st.integers(1, 5), st.integers(1, 50), st.integers(0, 1), st.booleans())
def test_any_epochs_give_back_the_running_count(epochs: int, length: int, base: int, with_total: bool) -> None:
    epoch = [e + base for e in range(epochs) for _ in range(length)]
    counter = [i + 1 for _ in range(epochs) for i in range(length)]
    got = steps(epoch, counter, length if with_total else UNKNOWN, certain=with_total)
    if length > 1 or with_total:
        assert got == list(range(1, epochs * length + 1))


def points(rows: Sequence[tuple[int, float]]) -> pl.DataFrame:
    """Points of (step, value), a line each."""
    table = [(step, value, None, line) for line, (step, value) in enumerate(rows, 1)]
    return pl.DataFrame(table, schema=POINTS_SCHEMA, orient="row")


def test_an_epoch_beyond_all_integers_is_none() -> None:
    series = {"epoch": points([(9, 1e300), (3, 2e300), (1, 1.0)])}
    assert by_epoch_column(series) == series


@pytest.mark.parametrize("name", ["epoch", "Epoch"])
def test_steps_that_restart_with_an_epoch_beside_them_are_added_up(name: str) -> None:
    counter = [0, 1, 2, 0, 1, 2]
    epochs = points(list(zip(counter, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], strict=True)))
    norms = points([(step, 1.5) for step in counter])
    renumbered = by_epoch_column({name: epochs, "grad_norm": norms})
    assert renumbered["grad_norm"]["step"].to_list() == [0, 1, 2, 3, 4, 5]
    assert renumbered["grad_norm"].schema == POINTS_SCHEMA


@pytest.mark.parametrize(
    ("epoch", "counter", "total"),
    [
        ([UNKNOWN] * 3, [-(2**62), 2**62, -(2**62)], 100),
        ([UNKNOWN] * 3, [1, 2**63 - 1, 1], 2**63 - 1),
        ([1, 1, 2, 2], [10, 2**63 - 1, 10, 20], UNKNOWN),
        ([1, 1, 2**52, 2**52], [10, 2**40, 10, 2**40], UNKNOWN),
        ([1, 1, -(2**63), 2], [10, 20, 10, 20], UNKNOWN),
    ],
)
def test_numbers_with_which_no_run_counts_are_left_alone(epoch: list[int], counter: list[int], total: int) -> None:
    assert steps(epoch, counter, total) == counter
