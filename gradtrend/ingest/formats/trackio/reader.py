"""Trackio's local store: an SQLite file a project, each row of metrics as JSON."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from gradtrend.errors import InputError
from gradtrend.ingest.files.sqlite import DAMAGE, columns_of, connection_to, damage_in, table_names
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.columns import Columns, series_of
from gradtrend.ingest.reading.rows import add_row
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns, newest
from gradtrend.model.runlog import Skipped

_NEEDED = {"run_name", "timestamp", "step", "metrics"}


def claims(path: Path, head: bytes) -> bool:
    """Whether an SQLite file, which its front knows by the first bytes, has Trackio's table of metrics."""
    try:
        with connection_to(path) as connection:
            return "metrics" in table_names(connection) and columns_of(connection, "metrics") >= _NEEDED
    except (InputError, *DAMAGE):
        return False


def runs(path: Path, wanted: WantedRuns) -> list[StoredRun]:
    """All runs of the store. Raises InputError where it cannot be read."""
    with _store(path) as connection:
        damage = damage_in(connection, ["metrics"])
        query = f"select {_key(connection)}, max(run_name), min(timestamp) from metrics not indexed group by 1"
        return [
            StoredRun(str(run), str(name), _seconds(first), has_metrics=True, experiment=(path.stem,), damage=damage)
            for run, name, first in connection.execute(query).fetchall()
        ]


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """The rows of one run. Raises InputError where the store cannot be read."""
    run = options.run or newest(runs(path, WantedRuns()), str(path))
    columns = Columns()
    skipped = [Skipped(f"the database is damaged: {run.damage}")] if run.damage else []
    with _store(path) as connection:
        index = "not indexed " if run.damage else ""  # an index that says something else than the table
        query = f"select id, step, timestamp, metrics from metrics {index}where {_key(connection)} = ? order by id"
        for row_id, step, timestamp, metrics in connection.execute(query, (run.id,)):
            row = _row(metrics)
            if row is None:
                skipped.append(Skipped(f"row {row_id} is not a JSON object"))
                continue
            # The store's own step counts; a `global_step` logged beside it is only one more metric.
            add_row(columns, row | {"timestamp": _seconds(timestamp)}, step, None)
        given = _config_of(connection, run.id)
    reading = Reading("trackio", path, series_of(columns), started=run.started, run=run, given=given)
    return (reading.with_skipped((*skipped, *columns.skipped())),)


@contextmanager
def _store(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a store. Raises InputError where it is damaged or none."""
    try:
        with connection_to(path) as connection:
            if "metrics" not in table_names(connection):
                raise InputError(f"{path} holds no table of metrics", "Give Trackio's database of the project.")
            yield connection
    except DAMAGE as error:
        raise InputError(f"{path}: {error}", "Is the store whole? Copy it again with its -wal file.") from error


def _key(connection: sqlite3.Connection, table: str = "metrics") -> str:
    """What tells runs apart: stores of early versions have names only, and so have their rows when a later version has
    added the column of ids.
    """
    return "coalesce(run_id, run_name)" if "run_id" in columns_of(connection, table) else "run_name"


def _config_of(connection: sqlite3.Connection, run: str) -> dict[str, Any]:
    """What `trackio.init(config=...)` was given; empty in stores of early versions, or where it is damaged."""
    try:
        key = _key(connection, "configs")
        found = connection.execute(f"select config from configs where {key} = ?", (run,)).fetchone()
    except DAMAGE:
        return {}
    return (found and _row(found[0])) or {}


def _row(metrics: str | bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(metrics)
    except (ValueError, RecursionError, TypeError):
        return None
    return row if isinstance(row, dict) else None


def _seconds(timestamp: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(timestamp)).timestamp()
    except ValueError:
        return None
