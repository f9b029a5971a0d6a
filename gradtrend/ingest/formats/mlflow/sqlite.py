"""MLflow's sqlite store (`mlflow.db`), read directly: any schema version, nothing written, nothing migrated."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.files.sqlite import DAMAGE, columns_of, connection_to, table_names
from gradtrend.ingest.formats.mlflow.runs import add_point, reading_of
from gradtrend.ingest.reading import SQLITE_MAGIC, Reading, ReadOptions
from gradtrend.ingest.reading.columns import Column, points_of
from gradtrend.ingest.reading.numbers import INT64_LIMIT
from gradtrend.ingest.reading.stored_runs import StoredRun, choose_run
from gradtrend.model.runlog import Skipped


def claims(path: Path, head: bytes) -> bool:
    """Whether a file is a database with MLflow's tables, or, where it is damaged, is named like one."""
    if path.is_dir():
        return False
    named = path.suffix in (".db", ".sqlite", ".sqlite3") and "mlflow" in path.name
    if not head.startswith(SQLITE_MAGIC):  # the front asks of text too, where its name speaks of MLflow
        return named
    try:
        with connection_to(path) as connection:
            return {"runs", "metrics"} <= table_names(connection) and "run_uuid" in columns_of(connection, "metrics")
    except (InputError, *DAMAGE):
        return named


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """One run. Raises InputError where the store is corrupt, locked, or holds no such run."""
    try:
        with connection_to(path) as connection:
            runs = _stored_runs(connection)
            run, notes = choose_run(runs, options.run_id, str(path))
            skipped: list[Skipped] = []
            series = points_of(_read_points(connection, run.id, skipped))
            return (reading_of(path, run, series, _read_params(connection, run.id), notes, skipped),)
    except DAMAGE as error:
        if "locked" in str(error):
            raise InputError(
                f"{path} is locked by another program", "Wait until it is done, or read a copy."
            ) from error
        raise InputError(
            f"{path} is no readable MLflow store: {error}",
            "The database is damaged or no MLflow store; restore it, or read another log of the run.",
        ) from error


def _selected(connection: sqlite3.Connection, table: str, wanted: Sequence[str]) -> str:
    """The SELECT for columns of a table, NULL for those that this schema does not have."""
    present = columns_of(connection, table)
    return "SELECT " + ", ".join(name if name in present else "NULL" for name in wanted) + f" FROM {table}"


def _stored_runs(connection: sqlite3.Connection) -> list[StoredRun]:
    """All runs of the store."""
    names: dict[str, str] = {}
    if "tags" in table_names(connection):
        names = dict(connection.execute("SELECT run_uuid, value FROM tags WHERE key = 'mlflow.runName'"))
    query = _selected(connection, "runs", ("run_uuid", "name", "start_time", "lifecycle_stage"))
    return [
        StoredRun(
            id=str(run),
            name=name or names.get(run),
            started=started / 1000 if isinstance(started, int | float) else None,
            has_metrics=_has_metrics(connection, run),
            deleted=stage == "deleted",
        )
        for run, name, started, stage in connection.execute(query).fetchall()
    ]


def _has_metrics(connection: sqlite3.Connection, run: str) -> bool:
    """Whether a run logged anything, without reading through the table."""
    (found,) = connection.execute("SELECT EXISTS (SELECT 1 FROM metrics WHERE run_uuid = ?)", (run,)).fetchone()
    return bool(found)


def _read_points(connection: sqlite3.Connection, run: str, skipped: list[Skipped]) -> dict[str, Column]:
    """All points of a run in the order inserted; a damaged page ends them, which is added to `skipped`."""
    columns: dict[str, Column] = {}
    query = _selected(connection, "metrics", ("key", "value", "timestamp", "step", "is_nan"))
    try:
        for key, value, time, step, is_nan in connection.execute(f"{query} WHERE run_uuid = ? ORDER BY rowid", (run,)):
            number = math.nan if is_nan else value
            if not isinstance(number, int | float) or not _fits(step) or not _fits(time):
                skipped.append(Skipped(f"metric {key}: value {value!r} at step {step!r} is no number"))
                continue
            add_point(columns, str(key), step, float(number), time)
    except DAMAGE as error:
        if not columns:
            raise
        read = sum(len(column.values) for column in columns.values())
        skipped.append(Skipped(f"database damaged behind {read} values: {error}"))
    return columns


def _fits(number: object) -> bool:
    """Whether a stored step or time is usable: sqlite keeps anything in any column."""
    return number is None or (isinstance(number, int) and abs(number) < INT64_LIMIT)


def _read_params(connection: sqlite3.Connection, run: str) -> dict[str, str]:
    """The parameters of a run; empty where they cannot be read, the metrics still can be judged."""
    if "params" not in table_names(connection):
        return {}
    try:
        rows = connection.execute("SELECT key, value FROM params WHERE run_uuid = ?", (run,)).fetchall()
    except DAMAGE:
        return {}
    return {str(key): str(value) for key, value in rows}
