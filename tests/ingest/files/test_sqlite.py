"""Databases that would take for ever, or make sqlite write, are read within bounds and left as they are."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from gradtrend.errors import InputError
from gradtrend.ingest.files import sqlite
from gradtrend.ingest.formats.mlflow import sqlite as mlflow
from gradtrend.ingest.formats.trackio import reader as trackio
from gradtrend.ingest.reading import ReadOptions
from tests.ingest.readings import long_table, read_one

COUNTING = "with recursive n(x) as (select 1 union all select x + 1 from n) select "
MLFLOW = (
    "create table runs (run_uuid, name, start_time, lifecycle_stage)",
    "create table metrics (key, value, timestamp, run_uuid, step, is_nan)",
    "insert into runs values ('a', 'a', 1, 'active')",
    *(f"insert into metrics values ('grad_norm', 1.5, {i}, 'a', {i}, 0)" for i in range(20)),
)
TRACKIO = (
    "create table metrics (id integer primary key, run_id, timestamp, run_name, step, metrics)",
    *(
        f"insert into metrics values ({i + 1}, 'a', '2026-01-01T10:00:{i:02}', 'a', {i}, '{{\"grad_norm\": 1.5}}')"
        for i in range(20)
    ),
)


def database(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def head_of(path: Path) -> bytes:
    return path.read_bytes()[:100]


def test_an_endless_view_of_parameters_is_not_looked_into(tmp_path: Path) -> None:
    view = f"create view params as {COUNTING} x as key, 'v' as value, 'a' as run_uuid from n"
    path = database(tmp_path / "mlflow.db", *MLFLOW, view)
    (reading,) = mlflow.read(path, ReadOptions())
    assert long_table(reading).height == 20


@pytest.mark.parametrize("steps", [None, 200_000])
def test_an_endless_view_in_place_of_the_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int | None
) -> None:
    columns = "x as id, x as run_id, '2026' as timestamp, 'a' as run_name, x as step, '{}' as metrics"
    path = database(tmp_path / "p.db", f"create view metrics as {COUNTING} {columns} from n")
    assert not trackio.claims(path, head_of(path))
    if steps is not None:
        monkeypatch.setattr(sqlite, "LEAST_STEPS", steps)
    began = time.monotonic()
    with pytest.raises(InputError, match="no table of metrics"):  # as when the format is named outright
        trackio.read(path, ReadOptions())
    assert time.monotonic() - began < 20


def test_the_limit_lets_an_honest_store_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "LEAST_STEPS", 0)
    rows = [f"insert into runs values ('r{i}', 'a', {i}, 'active')" for i in range(100)]
    points = [f"insert into metrics values ('norm', 1.5, {i}, 'r{i % 100}', {i}, 0)" for i in range(3000)]
    path = database(tmp_path / "mlflow.db", *MLFLOW, *rows, *points)  # without MLflow's own indexes
    assert long_table(read_one(mlflow.read, path, "r7")).height == 30


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
@pytest.mark.parametrize(("name", "statements", "store"), [("mlflow.db", MLFLOW, mlflow), ("p.db", TRACKIO, trackio)])
def test_a_pipe_beside_a_store_is_not_waited_for(
    tmp_path: Path, name: str, statements: tuple[str, ...], store: object, ending: str
) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    path = database(tmp_path / name, *statements)
    os.mkfifo(tmp_path / f"{name}{ending}")
    assert store.claims(path, head_of(path))  # type: ignore[attr-defined]
    (reading,) = store.read(path, ReadOptions())  # type: ignore[attr-defined]
    assert long_table(reading).height == 20


def test_a_left_over_write_ahead_log_of_trackio_is_read_and_nothing_written(tmp_path: Path) -> None:
    """As a killed process leaves it: the last rows stand in the log alone, and no index lies beside it."""
    run = tmp_path / "run"
    run.mkdir()
    with closing(sqlite3.connect(tmp_path / "live.db")) as writer:
        writer.execute("pragma journal_mode = wal")
        for statement in TRACKIO:
            writer.execute(statement)
        writer.commit()
        for ending in ("", "-wal"):
            shutil.copyfile(tmp_path / f"live.db{ending}", run / f"p.db{ending}")
    before = {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in run.iterdir()}
    assert trackio.claims(run / "p.db", head_of(run / "p.db"))
    (reading,) = trackio.read(run / "p.db", ReadOptions())
    assert long_table(reading).height == 20
    assert {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in run.iterdir()} == before


def test_a_virtual_table_over_an_endless_view_is_no_table(tmp_path: Path) -> None:
    runs = [statement for statement in MLFLOW if "runs" in statement]
    view = f"create view v as {COUNTING} x as rowid, 'n' as key, zeroblob(60000000) as value, 'a' as run_uuid from n"
    virtual = "create virtual table metrics using fts5(key, value, run_uuid, content='v', content_rowid='rowid')"
    path = database(tmp_path / "store.db", *runs, view, virtual)
    assert not mlflow.claims(path, head_of(path))
    began = time.monotonic()
    for read in (mlflow.runs, lambda path: mlflow.read(path, ReadOptions())):
        with pytest.raises(InputError, match="no table of metrics"):
            read(path)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(("statements", "store"), [(MLFLOW, "mlflow"), (TRACKIO, "trackio")])
def test_a_row_that_its_index_has_lost_is_read_and_the_damage_told(
    tmp_path: Path, statements: tuple[str, ...], store: str
) -> None:
    """As one flipped bit in the page of an index makes it: the row is there, a search does not see it."""
    column = "run_uuid" if store == "mlflow" else "run_id"
    path = database(tmp_path / "x.db", *statements, f"create index by_run on metrics ({column})")
    with closing(sqlite3.connect(path)) as connection:
        ((page, size),) = connection.execute(
            "select rootpage, (select page_size from pragma_page_size) from sqlite_master where name = 'by_run'"
        ).fetchall()
    data = bytearray(path.read_bytes())
    index = data[(page - 1) * size : page * size]
    place = index.rindex(b"a")  # of the last entry, whose key is the run's id
    data[(page - 1) * size + place] ^= 1
    path.write_bytes(data)
    reader = mlflow if store == "mlflow" else trackio
    with closing(sqlite3.connect(path)) as connection:
        ((seen,),) = connection.execute(f"select count(*) from metrics where {column} = 'a'").fetchall()
    assert seen < 20
    (reading,) = reader.read(path, ReadOptions())
    assert long_table(reading).height == 20
    assert "damaged" in reading.skipped[0].reason


def test_metrics_of_a_run_that_the_table_of_runs_has_lost(tmp_path: Path) -> None:
    path = database(tmp_path / "mlflow.db", *MLFLOW, "update runs set run_uuid = 'b'")
    runs = {run.id: run for run in mlflow.runs(path)}
    assert (runs["b"].has_metrics, runs["a"].has_metrics) == (False, True)
    (reading,) = mlflow.read(path, ReadOptions(runs["a"]))
    assert long_table(reading).height == 20
    assert "does not list it" in reading.skipped[0].reason


def test_a_log_that_is_moved_into_its_database_while_both_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the old database and the new, short log are read together, and rows are missing."""
    path = database(tmp_path / "mlflow.db", *MLFLOW)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("pragma journal_mode = wal")
        writer.execute("pragma wal_autocheckpoint = 0")
        for step in range(20, 2000):
            writer.execute(f"insert into metrics values ('grad_norm', 1.5, {step}, 'a', {step}, 0)")
        (run,) = mlflow.runs(path)
        copied: list[str] = []
        copy = sqlite.copy_regular

        def busy(source: Path, target: Path) -> None:
            copy(source, target)
            copied.append(source.name)
            if len(copied) == 1:  # between the copies of the database and of its log
                writer.execute("pragma wal_checkpoint(restart)")
                writer.execute("insert into metrics values ('grad_norm', 1.5, 2000, 'a', 2000, 0)")

        monkeypatch.setattr(sqlite, "copy_regular", busy)
        (reading,) = mlflow.read(path, ReadOptions(run))
    assert long_table(reading).height == 2001
    assert reading.skipped == ()
    assert len(copied) > 2


WRITER = """
import sqlite3, sys
writer = sqlite3.connect(sys.argv[1], isolation_level=None)
writer.execute("pragma journal_mode = wal")
writer.execute("pragma wal_autocheckpoint = 1")
print(flush=True)
for step in range(20, 10_000_000):
    writer.execute(f"insert into metrics values ('grad_norm', 1.5, {step}, 'a', {step}, 0)")
"""


def test_a_store_that_another_process_writes_to_all_the_time_is_not_damaged(tmp_path: Path) -> None:
    """Its log is begun anew after each row, so that most copies of the two do not fit each other."""
    index = "create unique index once on metrics (key, timestamp, step)"
    path = database(tmp_path / "mlflow.db", *MLFLOW, index)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        for _ in range(30):
            (reading,) = mlflow.read(path, ReadOptions())
            assert reading.skipped == ()
            assert reading.series["grad_norm"]["step"].to_list() == list(range(reading.series["grad_norm"].height))
    finally:
        writer.kill()
        writer.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps what is open")
def test_a_copy_leaves_nothing_behind_whenever_its_reader_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, copies = tmp_path / "a.db", tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(copies))
    with closing(sqlite3.connect(database)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (x)")
        writer.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(1000)])
        writer.commit()
        with sqlite.connection_to(database) as connection:
            assert not [file for folder in copies.iterdir() for file in folder.iterdir()]
            assert connection.execute("SELECT count(*), sum(x) FROM t").fetchone() == (1000, 499500)
    assert not list(copies.iterdir())
