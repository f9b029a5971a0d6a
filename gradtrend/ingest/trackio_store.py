"""Trackio's local store: an SQLite file a project, each row of metrics as JSON."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gradtrend.errors import InputError
from gradtrend.ingest.mlflow_runs import StoredRun, choose_run
from gradtrend.ingest.reading import MAX_SKIPPED_KEPT, Adapter, Reading, ReadOptions
from gradtrend.ingest.rows import Column, add_row, series_of
from gradtrend.model.runlog import Skipped

_MAGIC = b"SQLite format 3\0"
_DAMAGE = (sqlite3.Error, UnicodeDecodeError)  # sqlite3 decodes the messages of a damaged file without care
_NEEDED = {"run_name", "timestamp", "step", "metrics"}


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    """Read-only, and without SQLite leaving files beside the store: only one that is being written has a -wal."""
    writing = path.with_name(path.name + "-wal")
    mode = "mode=ro" if writing.exists() and writing.stat().st_size else "immutable=1"
    with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?{mode}", uri=True)) as connection:
        yield connection


def _columns_of(connection: sqlite3.Connection) -> set[str]:
    return {str(row[1]) for row in connection.execute("pragma table_info(metrics)")}


def claims(path: Path, head: bytes) -> bool:
    """True for an SQLite file with Trackio's table of metrics."""
    if not head.startswith(_MAGIC):
        return False
    try:
        with _open(path) as connection:
            return _columns_of(connection) >= _NEEDED
    except _DAMAGE:
        return False


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """The rows of one run: that of `run_id` (an id or a name), or the newest, and a note says so."""
    try:
        with _open(path) as connection:
            return (_read(path, connection, options.run_id),)
    except _DAMAGE as error:
        raise InputError(f"{path}: {error}", "Is the store whole? Copy it again with its -wal file.") from error


def _read(path: Path, connection: sqlite3.Connection, wanted: str | None) -> Reading:
    key = "run_id" if "run_id" in _columns_of(connection) else "run_name"  # stores of early versions have names only
    runs = [
        StoredRun(str(run), str(name), _seconds(first), has_metrics=True)
        for run, name, first in connection.execute(
            f"select {key}, max(run_name), min(timestamp) from metrics group by 1"
        )
    ]
    chosen, notes = choose_run(runs, wanted, str(path))
    columns: dict[str, Column] = {}
    skipped: list[Skipped] = []
    query = f"select id, step, timestamp, metrics from metrics where {key} = ? order by id"
    for row_id, step, timestamp, metrics in connection.execute(query, (chosen.id,)):
        row = _row(metrics)
        if row is None:
            skipped.append(Skipped(f"row {row_id} is not a JSON object"))
            continue
        # The store's own step counts; a `global_step` logged beside it is only one more metric.
        add_row(columns, row | {"timestamp": _seconds(timestamp)}, step, None)
    return Reading(
        "trackio",
        path,
        series_of(columns),
        started=chosen.started,
        notes=notes,
        skipped=tuple(skipped[:MAX_SKIPPED_KEPT]),
        skipped_count=len(skipped),
    )


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


ADAPTER = Adapter("trackio", claims, read)
