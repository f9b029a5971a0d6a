"""Trackio's local store: an SQLite file a project, each row of metrics as JSON."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from gradtrend.errors import InputError
from gradtrend.ingest.files.sqlite import DAMAGE, columns_of, connection_to, table_names
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.columns import Column, series_of
from gradtrend.ingest.reading.rows import add_row
from gradtrend.ingest.reading.stored_runs import StoredRun, choose_run
from gradtrend.model.runlog import Skipped

_NEEDED = {"run_name", "timestamp", "step", "metrics"}


def claims(path: Path, head: bytes) -> bool:
    """Whether an SQLite file, which its front knows by the first bytes, has Trackio's table of metrics."""
    try:
        with connection_to(path) as connection:
            return "metrics" in table_names(connection) and columns_of(connection, "metrics") >= _NEEDED
    except (InputError, *DAMAGE):
        return False


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """The rows of one run: that of `run_id` (an id or a name), or the newest, and a note says so."""
    try:
        with connection_to(path) as connection:
            return (_read(path, connection, options.run_id),)
    except DAMAGE as error:
        raise InputError(f"{path}: {error}", "Is the store whole? Copy it again with its -wal file.") from error


def _read(path: Path, connection: sqlite3.Connection, wanted: str | None) -> Reading:
    # Stores of early versions have names only.
    key = "run_id" if "run_id" in columns_of(connection, "metrics") else "run_name"
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
    reading = Reading("trackio", path, series_of(columns), started=chosen.started, notes=notes)
    return reading.with_skipped(skipped)


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
