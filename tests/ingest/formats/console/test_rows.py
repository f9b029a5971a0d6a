"""Memory stays bounded: a log with more lines than are kept is read evenly thinner, and that is said."""

from __future__ import annotations

import io

import numpy as np
import polars as pl
import pytest

from gradtrend.ingest.formats.console import reader as console
from gradtrend.ingest.formats.console import rows
from gradtrend.ingest.formats.console.rows import significant_digits
from tests.ingest.readings import long_table


def test_a_very_long_log_is_thinned_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_CONSOLE_LINES", 100)
    text = "".join(f"step {s} loss {s / 2} grad_norm {s / 4}\n" for s in range(1, 1001))
    (reading,) = console.read_stream(io.BufferedReader(io.BytesIO(text.encode())))
    norm = long_table(reading).filter(pl.col("metric") == "grad_norm")
    steps = norm["step"].to_numpy()
    assert 50 <= len(steps) <= 100
    assert len(np.unique(np.diff(steps))) <= 2
    assert steps[0] <= 16
    assert steps[-1] > 950
    assert (norm["value"].to_numpy() == steps / 4).all()
    assert (norm["line"].to_numpy() == steps).all()
    assert "thinned" in {note.kind for note in reading.notes}


@pytest.mark.parametrize(
    ("text", "digits"),
    [("0.0006012", 4), ("3.2e+0", 2), ("0.0000", 1), ("1,234.5", 5), ("-12", 2), ("8887301120.0000", 14), (".5", 1)],
)
def test_significant_digits(text: str, digits: int) -> None:
    assert significant_digits(text) == digits
