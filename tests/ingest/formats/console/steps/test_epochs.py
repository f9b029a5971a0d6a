"""Epochs of rows whose iterations begin again below a line that names the epoch."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from gradtrend.ingest.formats.console import reader as console


def steps(head: str, rows: Sequence[tuple[int, Sequence[int]]], row: str = "iter: {0}, loss: 2.5") -> list[int | None]:
    """The steps of rows at these counters, below a head for each (epoch, counters)."""
    text = "".join(
        head.format(epoch) + "\n" + "".join(row.format(i) + "\n" for i in counters) for epoch, counters in rows
    )
    (reading,) = console.read_stream(io.BufferedReader(io.BytesIO(text.encode())))
    return reading.series["loss"]["step"].to_list()


@pytest.mark.parametrize(
    "head",
    [
        "Training at epoch {} (total 4) with lr 0.0008",
        "Epoch: {}/4 ---",
        "2026-01-02 10:00:00,123 INFO: Start training epoch {}",
        "==== Epoch {} ====",
    ],
)
@pytest.mark.parametrize("row", ["iter: {0}, loss: 2.5", "batch count: {0}/40, iter: {0}, loss: 2.5"])
def test_iterations_that_begin_again_go_on(head: str, row: str) -> None:
    rows = [(epoch, (0, 10, 20, 30)) for epoch in (1, 2, 3)]
    assert steps(head, rows, row) == [*range(0, 31, 10), *range(31, 62, 10), *range(62, 93, 10)]


def test_steps_that_go_on_stay() -> None:
    assert steps("Epoch {}/4", [(1, (10, 20)), (2, (30, 40)), (3, (50, 60))]) == [10, 20, 30, 40, 50, 60]


def test_a_run_that_is_resumed_is_no_epoch() -> None:
    resumed = [(1, (10, 20)), (2, (30, 40)), (2, (30, 40)), (3, (50, 60))]
    assert steps("Epoch {}/4", resumed) == [10, 20, 30, 40, 30, 40, 50, 60]
    again = [(1, (10, 20, 30)), (1, (10, 20, 30))]
    assert steps("Epoch {}/4", again) == [10, 20, 30, 10, 20, 30]
    job = [(1, (0, 10, 20)), (2, (0, 10, 20))]
    assert steps("Epoch {}/4", [*job, *job]) == [0, 10, 20, 21, 31, 41] * 2


def test_other_talk_of_epochs_names_none() -> None:
    assert steps("saving after epoch {}", [(1, (0, 10)), (2, (0, 10))]) == [0, 10, 0, 10]
    assert steps("Epochs: {}", [(9, (0, 10)), (3, (0, 10))]) == [0, 10, 0, 10]


def test_one_row_an_epoch_at_its_last_count() -> None:
    assert steps("Epoch {}/8", [(epoch, (100,)) for epoch in (1, 2, 3)]) == [1, 2, 3]
