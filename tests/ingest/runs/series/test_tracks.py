"""Copies of a part are left out, however many parts there are."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradtrend.ingest.reading import POINTS_SCHEMA, Reading
from gradtrend.ingest.runs.series import tracks
from gradtrend.ingest.runs.series.tracks import tracks_of

Rows = list[tuple[int, float | None]]


def reading(rows: Rows, number: int) -> Reading:
    points = [(step, value, None, None) for step, value in rows]
    series = {"grad_norm": pl.DataFrame(points, schema=POINTS_SCHEMA, orient="row")}
    return Reading("tensorboard", Path(f"{number}"), series, started=float(number))


def joined(parts: list[Rows]) -> list[str]:
    (track,) = tracks_of([reading(rows, number) for number, rows in enumerate(parts)])
    return [repr(row) for row in track.rows.select("step", "value").iter_rows()]


def plain(row: tuple[int, float | None]) -> str:
    return repr((row[0], row[1] if row[1] is None else row[1] + 0.0))


def without_copies(parts: list[Rows]) -> list[str]:
    """By looking at each pair."""
    texts = [[plain(row) for row in rows] for rows in parts]
    kept = [
        i
        for i, rows in enumerate(texts)
        if not any(
            longer[: len(rows)] == rows and (len(longer) > len(rows) or j < i)
            for j, longer in enumerate(texts)
            if j != i
        )
    ]
    return [repr(row) for i in kept for row in parts[i]]


VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.0, math.nan, math.inf, None])
PARTS = st.lists(st.lists(st.tuples(st.integers(0, 2), VALUES), min_size=1, max_size=4), min_size=1, max_size=8)


@settings(max_examples=400, deadline=None)
@given(PARTS)
def test_the_same_as_looking_at_each_pair(parts: list[Rows]) -> None:
    assert joined(parts) == without_copies(parts)


def test_a_thousand_parts_are_not_compared_each_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    as_bytes = tracks._as_bytes
    monkeypatch.setattr(tracks, "_as_bytes", lambda frame: made.append(1) or as_bytes(frame))
    parts: list[Rows] = [[(number, 1.0), (number + 1, 2.0)] for number in range(1000)]
    assert len(joined(parts)) == 2000
    assert not made  # each starts at a step of its own
    same: list[Rows] = [[(0, float(number % 400)), (1, 2.0)] for number in range(1000)]
    assert len(joined(same)) == 800
    assert len(made) == 1000
