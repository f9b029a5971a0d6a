"""Trackio's store, its own and built by hand."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradtrend.errors import InputError
from gradtrend.ingest.formats.trackio import reader
from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.stored_runs import WantedRuns
from tests.ingest.readings import long_table, read_one
from tests.places import RUNS

REAL = RUNS / "trackio" / "two_runs" / "trackio" / "toy.db"
NUMBERS = st.floats(width=64) | st.sampled_from([math.nan, math.inf, -math.inf])


def store(path: Path, rows: list[tuple[str, int, str | bytes]]) -> Path:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table metrics (id integer primary key, run_id, timestamp, run_name, step, metrics)")
        for name, step, metrics in rows:
            values = (f"id-{name}", f"2026-01-01T10:00:{step % 60:02d}+00:00", name, step, metrics)
            connection.execute(
                "insert into metrics (run_id, timestamp, run_name, step, metrics) values (?,?,?,?,?)", values
            )
        connection.commit()
    return path


def read(path: Path, run_id: str | None = None) -> Reading:
    return read_one(reader.read, path, run_id)


def points(reading: Reading, metric: str) -> list[tuple[int | None, str]]:
    rows = long_table(reading).filter(pl.col("metric") == metric)
    return [(step, repr(value)) for step, value in rows.select("step", "value").iter_rows()]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=10), st.booleans())
def test_what_is_written_is_read_back(tmp_path: Path, values: list[float], blob: bool) -> None:
    odd = [v if math.isfinite(v) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(v)] for v in values]
    texts = [json.dumps({"train/grad_norm": value, "global_step": 10 * i}) for i, value in enumerate(odd)]
    path = store(tmp_path / "p.db", [("a", i, text.encode() if blob else text) for i, text in enumerate(texts)])
    assert points(read(path), "train/grad_norm") == [(i, repr(value)) for i, value in enumerate(values)]


def test_each_run_is_read_and_without_a_word_the_newest() -> None:
    runs = reader.runs(REAL, WantedRuns())
    assert {run.experiment for run in runs} == {("toy",)}
    assert len({run.id for run in runs}) == 2
    reading = read(REAL)
    assert math.isnan(long_table(reading).filter(pl.col("metric") == "train/grad_norm")["value"][-1])
    healthy = read(REAL, "healthy")
    assert long_table(healthy).filter(pl.col("metric") == "train/grad_norm").height == 30
    assert healthy.run in runs
    with pytest.raises(InputError, match="no run nobody"):
        read(REAL, "nobody")


def test_reading_leaves_nothing_beside_the_store(tmp_path: Path) -> None:
    path = tmp_path / "toy.db"
    path.write_bytes(REAL.read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = wal")
    for left in tmp_path.glob("toy.db-*"):
        left.unlink()
    assert reader.claims(path, path.read_bytes()[:65536])
    read(path)
    assert [p.name for p in tmp_path.iterdir()] == ["toy.db"]


def test_a_store_that_is_still_written_is_read_with_its_log(tmp_path: Path) -> None:
    path = store(tmp_path / "p.db", [("a", 0, '{"grad_norm": 1.0}')])
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("pragma journal_mode = wal")
        writer.execute("insert into metrics select 2, run_id, timestamp, run_name, 1, metrics from metrics")
        writer.commit()
        assert points(read(path), "grad_norm") == [(0, "1.0"), (1, "1.0")]


def test_a_bad_row_is_left_out_and_said(tmp_path: Path) -> None:
    reading = read(
        store(tmp_path / "p.db", [("a", 0, '{"loss": 1.0}'), ("a", 1, "not json"), ("a", 2, '{"loss": 3.0}')])
    )
    assert points(reading, "loss") == [(0, "1.0"), (2, "3.0")]
    assert reading.skipped_count == 1


def test_a_damaged_store_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    path.write_bytes(REAL.read_bytes()[:5000])
    assert not reader.claims(path, path.read_bytes())
    with pytest.raises(InputError, match=r"p\.db"):
        read(path)


def test_other_stores_are_left_to_others(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection:
        connection.execute("create table metrics (key, value, timestamp, run_uuid, step, is_nan)")
    assert not reader.claims(tmp_path / "m.db", (tmp_path / "m.db").read_bytes())


def test_rows_from_before_the_column_of_ids_are_runs_by_their_names(tmp_path: Path) -> None:
    rows = [(name, step, json.dumps({"grad_norm": float(step)})) for name in ("old", "older", "new") for step in (0, 1)]
    path = store(tmp_path / "p.db", rows)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update metrics set run_id = null where run_name != 'new'")
        connection.commit()
    assert {(run.id, run.name) for run in reader.runs(path, WantedRuns())} == {
        ("old", "old"), ("older", "older"), ("id-new", "new"),
    }  # fmt: skip
    for run_id in ("old", "older", "id-new"):
        assert points(read(path, run_id), "grad_norm") == [(0, "0.0"), (1, "1.0")]
