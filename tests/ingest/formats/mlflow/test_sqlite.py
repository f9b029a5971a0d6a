"""MLflow's sqlite store: a real one of LightlyTrain, older and newer schemas, damage, and nothing written."""

from __future__ import annotations

import math
import shutil
import sqlite3
from pathlib import Path

import polars as pl
import pytest

from gradtrend.errors import InputError
from gradtrend.ingest.formats.mlflow import sqlite
from tests.ingest.readings import long_table, read_one
from tests.places import EXPLODING

REAL = EXPLODING / "mlflow.db"
START = 1_700_000_000_000


def head_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(1 << 16)


def make_store(
    path: Path, metric_columns: str, rows: list[tuple[object, ...]], run_columns: str = "name, start_time"
) -> Path:
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE runs (run_uuid, {run_columns})")
        width = len(run_columns.split(","))
        connection.execute(
            f"INSERT INTO runs VALUES ('r1'{', ?' * width})", ["run", START][:width] + [None] * (width - 2)
        )
        connection.execute(f"CREATE TABLE metrics ({metric_columns}, run_uuid)")
        connection.executemany(f"INSERT INTO metrics VALUES ({'?, ' * len(rows[0])}'r1')", rows)
    connection.close()
    return path


def test_lightly_train_s_store_equals_its_metrics_jsonl() -> None:
    pattern = r'"gradient_norm": ([-\w.+]+)'
    logged = pl.Series((EXPLODING / "metrics.jsonl").read_text().splitlines()).str.extract(pattern).drop_nulls()
    expected = [math.inf if text == "Infinity" else float(text) for text in logged]
    reading = read_one(sqlite.read, REAL)
    norm = long_table(reading).filter(pl.col("metric") == "gradient_norm")
    assert norm["value"].to_list() == expected
    assert norm["value"].is_infinite().any()
    assert norm["step"].to_list() == list(range(60))
    assert reading.started == 1795972292.145
    assert reading.settings.gradient_clip == 0.0


def test_current_schema_with_nan_inf_and_steps_logged_twice(tmp_path: Path) -> None:
    rows = [("n", 1.5, START, 0, 0), ("n", 0.0, START + 1, 1, 1), ("n", -1.7976931348623157e308, START + 2, 2, 0)]
    rows += [("n", 4.0, START + 2, 2, 0), ("n", 0.5, START + 1, 9, 0)]
    reading = read_one(sqlite.read, make_store(tmp_path / "m.db", "key, value, timestamp, step, is_nan", rows))
    assert [repr(value) for value in long_table(reading)["value"]] == ["1.5", "nan", "0.5", "-inf", "4.0"]
    assert long_table(reading)["step"].to_list() == [0, 1, 9, 2, 2]


def test_old_schema_without_step_and_is_nan(tmp_path: Path) -> None:
    rows = [("n", 1.5, START), ("n", 2.5, START + 1)]
    path = make_store(tmp_path / "m.db", "key, value, timestamp", rows, run_columns="name, start_time")
    assert sqlite.claims(path, head_of(path))
    reading = read_one(sqlite.read, path)
    assert long_table(reading)["step"].to_list() == [None, None]
    assert long_table(reading)["value"].to_list() == [1.5, 2.5]


def test_newer_schema_with_more_columns(tmp_path: Path) -> None:
    rows = [("n", "future", 1.5, START, 3, 0)]
    columns = "key, model, value, timestamp, step, is_nan"
    path = make_store(tmp_path / "m.db", columns, rows, run_columns="name, start_time, lifecycle_stage, other")
    assert long_table(read_one(sqlite.read, path)).row(0) == ("n", 3, 1.5, START / 1000, None)


def test_a_column_holds_what_it_should_not(tmp_path: Path) -> None:
    rows = [("n", "hello", START, 0, 0), ("n", None, START, 1, 0), ("n", 1.0, "later", 2, 0), ("n", 2.0, START, 3, 0)]
    reading = read_one(sqlite.read, make_store(tmp_path / "m.db", "key, value, timestamp, step, is_nan", rows))
    assert long_table(reading)["step"].to_list() == [3]
    assert reading.skipped_count == 3


def test_claims_by_tables_then_by_name(tmp_path: Path) -> None:
    claims = sqlite.claims
    renamed = tmp_path / "store.bin"
    shutil.copy(REAL, renamed)
    assert claims(renamed, head_of(renamed))
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE metrics (id, timestamp, run_name, step, metrics)")
        connection.execute("CREATE TABLE runs (id)")
    connection.close()
    assert not claims(other, head_of(other))
    assert claims(tmp_path / "mlflow.db", b"garbage")
    assert not claims(tmp_path / "metrics.jsonl", b'{"loss": 1}')
    assert not claims(tmp_path, b"")


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100, b"SQLite format 3\0" + bytes(5000)])
def test_a_corrupt_file_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mlflow.db"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"mlflow\.db") as caught:
        read_one(sqlite.read, path)
    assert caught.value.hint


def test_every_cut_and_every_damaged_page_is_an_error_or_a_reading(tmp_path: Path) -> None:
    data = REAL.read_bytes()
    path = tmp_path / "mlflow.db"
    outcomes = set()
    for offset in range(0, len(data), len(data) // 80):
        for damaged in (data[:offset], data[:offset] + b"\xa5" * 512 + data[offset + 512 :]):
            path.write_bytes(damaged)
            try:
                outcomes.add("read" if long_table(read_one(sqlite.read, path)).height else "empty")
            except InputError:
                outcomes.add("refused")
    assert outcomes == {"read", "refused"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["mlflow.db"]


def test_values_before_a_damaged_page_are_used(tmp_path: Path) -> None:
    rows = [("n", float(step), START + step, step, 0) for step in range(5000)]
    path = make_store(tmp_path / "mlflow.db", "key, value, timestamp, step, is_nan", rows)
    data = bytearray(path.read_bytes())
    page = 4096 * (len(data) // 4096 - 3)
    data[page : page + 4096] = b"\xa5" * 4096
    path.write_bytes(data)
    reading = read_one(sqlite.read, path)
    assert 3000 < long_table(reading).height < 5000
    assert long_table(reading)["value"].to_list() == [float(step) for step in range(long_table(reading).height)]
    assert "damaged" in reading.skipped[0].reason


def test_a_write_ahead_log_is_read_from_a_copy(tmp_path: Path) -> None:
    live = tmp_path / "live"
    live.mkdir()
    writer = sqlite3.connect(
        make_store(live / "mlflow.db", "key, value, timestamp, step, is_nan", [("n", 1.0, START, 0, 0)])
    )
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("INSERT INTO metrics VALUES ('n', 2.0, ?, 1, 0, 'r1')", (START + 1,))
    writer.commit()
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for name in ("mlflow.db", "mlflow.db-wal"):
        shutil.copy(live / name, crashed / name)
    writer.close()
    before = {entry.name: entry.read_bytes() for entry in crashed.iterdir()}
    assert long_table(read_one(sqlite.read, crashed / "mlflow.db"))["value"].to_list() == [1.0, 2.0]
    assert {entry.name: entry.read_bytes() for entry in crashed.iterdir()} == before


def test_reading_changes_nothing_in_either_journal_mode(tmp_path: Path) -> None:
    for mode in ("DELETE", "WAL"):
        folder = tmp_path / mode
        folder.mkdir()
        path = folder / "mlflow.db"
        shutil.copy(REAL, path)
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.close()
        before = (path.read_bytes(), path.stat().st_mtime_ns)
        folder.chmod(0o555)
        try:
            assert long_table(read_one(sqlite.read, path)).height == 430
        finally:
            folder.chmod(0o755)
        assert (path.read_bytes(), path.stat().st_mtime_ns) == before
        assert [entry.name for entry in folder.iterdir()] == ["mlflow.db"]


def test_several_runs_and_unknown_ones() -> None:
    with pytest.raises(InputError, match="no run zz") as caught:
        read_one(sqlite.read, REAL, "zz")
    assert "exploding_lr_nan" in (caught.value.hint or "")
    assert long_table(read_one(sqlite.read, REAL, "exploding_lr_nan")).height == 430


def test_a_folder_or_nothing_in_its_place(tmp_path: Path) -> None:
    for path in (tmp_path / "mlflow.db", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            read_one(sqlite.read, path)
