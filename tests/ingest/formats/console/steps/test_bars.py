"""Steps from the bars around rows that name none."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from gradtrend.ingest.formats.console import reader as console


def steps(counts: Sequence[int | None]) -> list[int | None]:
    """The steps of rows with bars at these counts (None for a row without one) behind them."""
    text = "".join(
        f"{{'loss': {i}.5, 'grad_norm': 1.5, 'epoch': 0.1}}\n"
        + ("" if count is None else f" 9%|▍| {count}/500 [01:22<4:08, 2s/it]\n")
        for i, count in enumerate(counts)
    )
    (reading,) = console.read_stream(io.BufferedReader(io.BytesIO(text.encode())))
    return reading.series["loss"]["step"].to_list()


def test_a_second_job_begins_again() -> None:
    assert steps([*range(1, 13), *range(1, 9)]) == [*range(1, 13), *range(1, 9)]
    assert steps([*range(10, 130, 10), *range(10, 90, 10)]) == [*range(10, 130, 10), *range(10, 90, 10)]


def test_each_job_is_filled_by_itself() -> None:
    jobs = [*range(10, 210, 10), *range(10, 210, 10)]
    assert steps([None if i in (5, 25) else step for i, step in enumerate(jobs)]) == jobs


@pytest.mark.parametrize(
    "counts",
    [
        [10, 20, 30, 40, 20, 30, 40],  # back, but not to its start
        [10, 20, 30, 40, 10, 10, 20, 30],  # a job of one row
        [10, 20, 20, 30, 40],
    ],
)
def test_bars_that_go_back_otherwise_give_no_step(counts: list[int]) -> None:
    assert steps(counts) == [None] * len(counts)
