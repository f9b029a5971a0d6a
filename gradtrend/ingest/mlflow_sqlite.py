"""MLflow's sqlite store (`mlflow.db`), read directly: any schema version, nothing written, nothing migrated."""

from __future__ import annotations

import math
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.mlflow_runs import INT64_LIMIT, StoredRun, add_point, choose_run, reading_of
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.rows import Column, points_of
from gradtrend.model.runlog import Skipped

MAGIC = b"SQLite format 3\0"
WAL_VERSION = 2  # the file format's "read version" at byte 19 in write-ahead-log mode
WAIT_SECONDS = 2.0  # for a writer to finish its transaction
DAMAGE = (sqlite3.Error, UnicodeDecodeError)  # sqlite3 decodes names and messages of a damaged file without care


def claims(path: Path, head: bytes) -> bool:
    """Say whether a file is a database with MLflow's tables, or, where it is damaged, is named like one."""
    if path.is_dir():
        return False
    named = path.suffix in (".db", ".sqlite", ".sqlite3") and "mlflow" in path.name
    if not head.startswith(MAGIC):
        return named
    try:
        with connection_to(path) as connection:
            return {"runs", "metrics"} <= table_names(connection) and "run_uuid" in columns_of(connection, "metrics")
    except (InputError, *DAMAGE):
        return named


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """Read one run; raises InputError where the store is corrupt, locked, or holds no such run."""
    try:
        with connection_to(path) as connection:
            runs = stored_runs(connection)
            run, notes = choose_run(runs, options.run_id, str(path))
            skipped: list[Skipped] = []
            series = points_of(read_points(connection, run.id, skipped))
            return (reading_of(path, run, series, read_params(connection, run.id), notes, skipped),)
    except DAMAGE as error:
        if "locked" in str(error):
            raise InputError(
                f"{path} is locked by another program", "Wait until it is done, or read a copy."
            ) from error
        raise InputError(
            f"{path} is no readable MLflow store: {error}",
            "The database is damaged or no MLflow store; restore it, or read another log of the run.",
        ) from error


@contextmanager
def connection_to(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database so that no byte of it changes and no file appears beside it.

    sqlite may write when it merely reads: a write-ahead log needs an index file, a left-over journal is rolled back.
    A database with either is read from a copy. Raises InputError where it cannot be opened.
    """
    path = path.resolve()
    try:
        with path.open("rb") as file:
            head = file.read(20)
        companions = [path.with_name(path.name + ending) for ending in ("-wal", "-journal")]
        live = [companion for companion in companions if companion.exists() and companion.stat().st_size]
        with tempfile.TemporaryDirectory(prefix="gradtrend-") as folder:
            place, mode = path, "mode=ro"
            if live:
                place, mode = Path(folder) / path.name, "mode=rw"
                for source in (path, *live):
                    shutil.copyfile(source, Path(folder) / source.name)
            elif head[19:20] == bytes([WAL_VERSION]):
                mode = "mode=ro&immutable=1"  # without it sqlite would create a log and an index
            connection = sqlite3.connect(f"{place.as_uri()}?{mode}", uri=True, timeout=WAIT_SECONDS)
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            try:
                yield connection
            finally:
                connection.close()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def table_names(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the tables."""
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    """Return the column names of a table, which differ between versions; empty without such a table."""
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def selected(connection: sqlite3.Connection, table: str, wanted: Sequence[str]) -> str:
    """Return the SELECT for columns of a table, NULL for those that this schema does not have."""
    present = columns_of(connection, table)
    return "SELECT " + ", ".join(name if name in present else "NULL" for name in wanted) + f" FROM {table}"


def stored_runs(connection: sqlite3.Connection) -> list[StoredRun]:
    """Return all runs of the store."""
    names: dict[str, str] = {}
    if "tags" in table_names(connection):
        names = dict(connection.execute("SELECT run_uuid, value FROM tags WHERE key = 'mlflow.runName'"))
    query = selected(connection, "runs", ("run_uuid", "name", "start_time", "lifecycle_stage"))
    return [
        StoredRun(
            id=str(run),
            name=name or names.get(run),
            started=started / 1000 if isinstance(started, int | float) else None,
            has_metrics=has_metrics(connection, run),
            deleted=stage == "deleted",
        )
        for run, name, started, stage in connection.execute(query).fetchall()
    ]


def has_metrics(connection: sqlite3.Connection, run: str) -> bool:
    """Say whether a run logged anything, without reading through the table."""
    (found,) = connection.execute("SELECT EXISTS (SELECT 1 FROM metrics WHERE run_uuid = ?)", (run,)).fetchone()
    return bool(found)


def read_points(connection: sqlite3.Connection, run: str, skipped: list[Skipped]) -> dict[str, Column]:
    """Return all points of a run in the order inserted; a damaged page ends them, which is added to `skipped`."""
    columns: dict[str, Column] = {}
    query = selected(connection, "metrics", ("key", "value", "timestamp", "step", "is_nan"))
    try:
        for key, value, time, step, is_nan in connection.execute(f"{query} WHERE run_uuid = ? ORDER BY rowid", (run,)):
            number = math.nan if is_nan else value
            if not isinstance(number, int | float) or not fits(step) or not fits(time):
                skipped.append(Skipped(f"metric {key}: value {value!r} at step {step!r} is no number"))
                continue
            add_point(columns, str(key), step, float(number), time)
    except DAMAGE as error:
        if not columns:
            raise
        read = sum(len(column.values) for column in columns.values())
        skipped.append(Skipped(f"database damaged behind {read} values: {error}"))
    return columns


def fits(number: object) -> bool:
    """Say whether a stored step or time is usable: sqlite keeps anything in any column."""
    return number is None or (isinstance(number, int) and abs(number) < INT64_LIMIT)


def read_params(connection: sqlite3.Connection, run: str) -> dict[str, str]:
    """Return the parameters of a run; empty where they cannot be read, the metrics still can be judged."""
    try:
        rows = connection.execute("SELECT key, value FROM params WHERE run_uuid = ?", (run,)).fetchall()
    except DAMAGE:
        return {}
    return {str(key): str(value) for key, value in rows}
