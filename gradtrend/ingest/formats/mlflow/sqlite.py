"""MLflow's sqlite store (`mlflow.db`), read directly: any schema version, nothing written, nothing migrated."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gradtrend.errors import InputError
from gradtrend.ingest.files.sqlite import DAMAGE, columns_of, connection_to, damage_in, table_names
from gradtrend.ingest.formats.mlflow.runs import add_point, reading_of
from gradtrend.ingest.reading import SQLITE_MAGIC, Reading, ReadOptions
from gradtrend.ingest.reading.columns import Columns, points_of
from gradtrend.ingest.reading.numbers import INT64_LIMIT
from gradtrend.ingest.reading.stored_runs import StoredRun, newest
from gradtrend.model.runlog import Skipped

_TABLES = {"runs", "metrics"}
_NAME, _PARENT = "mlflow.runName", "mlflow.parentRunId"
_STRAY = "its metrics are there, but the table of runs does not list it"


def claims(path: Path, head: bytes) -> bool:
    """Whether a file is a database with MLflow's tables, or, where it is damaged, is named like one."""
    if path.is_dir():
        return False
    named = path.suffix in (".db", ".sqlite", ".sqlite3") and "mlflow" in path.name
    if not head.startswith(SQLITE_MAGIC):  # the front asks of text too, where its name speaks of MLflow
        return named
    try:
        with connection_to(path) as connection:
            return table_names(connection) >= _TABLES and "run_uuid" in columns_of(connection, "metrics")
    except (InputError, *DAMAGE):
        return named


def runs(path: Path) -> list[StoredRun]:
    """All runs of the store. Raises InputError where it is corrupt or locked."""
    with _store(path) as connection:
        return _stored_runs(connection, damage_in(connection, sorted(_TABLES)))


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """One run. Raises InputError where the store is corrupt or locked."""
    run = options.run or newest(runs(path), str(path))
    with _store(path) as connection:
        skipped = [Skipped(f"the database is damaged: {run.damage}")] if run.damage else []
        series = points_of(_read_points(connection, run, skipped))
        return (reading_of(path, run, series, _read_params(connection, run.id), skipped),)


@contextmanager
def _store(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a store. Raises InputError where it is corrupt, locked or none."""
    try:
        with connection_to(path) as connection:
            missing = _TABLES - table_names(connection)
            if missing:
                raise InputError(
                    f"{path} is no readable MLflow store: it has no table of {' and '.join(sorted(missing))}",
                    "Give MLflow's database, or read another log of the run.",
                )
            yield connection
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


def _stored_runs(connection: sqlite3.Connection, damage: str) -> list[StoredRun]:
    """All runs of the store, also those that have lost their row in its table of runs."""
    counts = _counts(connection)
    names, parents = _tags(connection, _NAME), _tags(connection, _PARENT)
    experiments = _experiments(connection)
    query = _selected(connection, "runs", ("run_uuid", "name", "start_time", "lifecycle_stage", "experiment_id"))
    found = [
        StoredRun(
            id=str(run),
            name=_text(name) or names.get(run),
            started=started / 1000 if isinstance(started, int | float) else None,
            has_metrics=counts is None or run in counts,
            deleted=stage == "deleted",
            experiment=() if experiment is None else (str(experiment), *experiments.get(experiment, ())),
            parent=parents.get(run, ""),
            damage=damage,
        )
        for run, name, started, stage, experiment in connection.execute(f"{query} NOT INDEXED").fetchall()
    ]
    stray = {str(run) for run in counts or ()} - {run.id for run in found}
    return found + [StoredRun(run, None, None, has_metrics=True, damage=damage or _STRAY) for run in sorted(stray)]


def _counts(connection: sqlite3.Connection) -> dict[str, int] | None:
    """How many values each run logged, by the table and not by an index; None where a page of it is damaged."""
    try:
        return dict(connection.execute("SELECT run_uuid, count(*) FROM metrics NOT INDEXED GROUP BY 1").fetchall())
    except DAMAGE:
        return None


def _text(name: Any) -> str | None:
    return str(name) if name else None


def _tags(connection: sqlite3.Connection, key: str) -> dict[str, str]:
    """The value of a tag by run; empty where it cannot be read."""
    if "tags" not in table_names(connection):
        return {}
    try:
        rows = connection.execute("SELECT run_uuid, value FROM tags NOT INDEXED WHERE key = ?", (key,)).fetchall()
    except DAMAGE:
        return {}
    return {run: str(value) for run, value in rows if value}


def _experiments(connection: sqlite3.Connection) -> dict[Any, tuple[str]]:
    """The name of each experiment by its id; empty where it cannot be read."""
    if "experiments" not in table_names(connection):
        return {}
    try:
        rows = connection.execute("SELECT experiment_id, name FROM experiments NOT INDEXED").fetchall()
    except DAMAGE:
        return {}
    return {experiment: (str(name),) for experiment, name in rows}


def _read_points(connection: sqlite3.Connection, run: StoredRun, skipped: list[Skipped]) -> Columns:
    """All points of a run in the order inserted; a damaged page ends them, which is added to `skipped`."""
    columns = Columns()
    query = _selected(connection, "metrics", ("key", "value", "timestamp", "step", "is_nan"))
    index = "NOT INDEXED " if run.damage else ""  # an index that says something else than the table is not believed
    try:
        for key, value, time, step, is_nan in connection.execute(
            f"{query} {index}WHERE run_uuid = ? ORDER BY rowid", (run.id,)
        ):
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
    skipped += columns.skipped()
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
