"""Megatron's habit of leaving out a loss that is NaN."""

from __future__ import annotations

import io

import polars as pl

from gradtrend.ingest.formats.console import reader as console
from tests.ingest.readings import long_table


def losses(*lines: tuple[int, str, int, int]) -> list[tuple[int, str]]:
    text = "".join(
        f" iteration {i:8d}/ 100 | learning rate: 1.0E-04 |{loss} loss scale: 1.0 | grad norm: 1.2 |"
        f" number of skipped iterations: {skipped:3d} | number of nan iterations: {undefined:3d} |\n"
        for i, loss, skipped, undefined in lines
    )
    (reading,) = console.read_stream(io.BufferedReader(io.BytesIO(text.encode())))
    rows = long_table(reading).filter(pl.col("metric") == "lm loss").sort("step")
    return [(step, repr(value)) for step, value in rows.select("step", "value").iter_rows()]


def test_a_loss_left_out_is_nan_unless_the_iterations_were_skipped() -> None:
    got = losses(
        (1, " lm loss: 2.0E+00 |", 0, 0), (2, "", 1, 0), (3, "", 0, 0), (4, "", 1, 1), (5, " lm loss: 1.0E+00 |", 0, 0)
    )
    assert got == [(1, "2.0"), (3, "nan"), (4, "nan"), (5, "1.0")]


def test_a_log_that_never_prints_a_loss_has_none() -> None:
    assert losses((1, "", 0, 0), (2, "", 0, 0)) == []
