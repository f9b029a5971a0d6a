"""One log of Weights & Biases, `run-*.wandb`: protobuf records. Read without the wandb package.

The x-axis of a metric is what `define_metric` says, else a logged `global_step`, else wandb's own row counter `_step`.
"""

from __future__ import annotations

import fnmatch
import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradtrend.errors import EmptyLogError, InputError
from gradtrend.ingest.files.protobuf import integer, message_time, whole_fields
from gradtrend.ingest.formats.wandb.records import records
from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.columns import Columns, series_of
from gradtrend.ingest.reading.numbers import number, whole
from gradtrend.ingest.reading.rows import NOT_METRICS, flatten
from gradtrend.ingest.reading.stored_runs import StoredRun
from gradtrend.model.runlog import Skipped

# Field numbers of wandb_internal.proto.
_HISTORY, _CONFIG, _METRIC, _RUN = 2, 5, 12, 17
_ITEM, _HISTORY_STEP = 1, 2
_KEY, _NESTED_KEY, _VALUE_JSON = 1, 2, 16
_NAME, _GLOB, _STEP_METRIC, _STEP_METRIC_INDEX = 1, 2, 4, 5
_UPDATE, _REMOVE = 1, 2
_RUN_ID, _PROJECT, _RUN_CONFIG, _DISPLAY_NAME, _START_TIME = 1, 3, 4, 8, 17
_HEAD = 256 * 1024  # bytes, in which a run's own record stands: only the configuration is before it or in it
_GLOBAL_STEPS = ("global_step", "trainer/global_step", "train/global_step")


@dataclass(slots=True)
class _Axes:
    """What `define_metric` said: which metric is the x-axis of which."""

    names: list[str] = field(default_factory=list)
    exact: dict[str, str] = field(default_factory=dict)
    globs: list[tuple[str, str]] = field(default_factory=list)

    def add(self, record: bytes) -> None:
        name = glob = axis = ""
        index = 0
        for key, value in whole_fields(record):
            if key == _NAME and isinstance(value, bytes):
                name = value.decode("utf-8", errors="replace")
            elif key == _GLOB and isinstance(value, bytes):
                glob = value.decode("utf-8", errors="replace")
            elif key == _STEP_METRIC and isinstance(value, bytes):
                axis = value.decode("utf-8", errors="replace")
            elif key == _STEP_METRIC_INDEX and isinstance(value, int):
                index = value
        self.names.append(name or glob)
        axis = axis or (self.names[index - 1] if 0 < index <= len(self.names) else "")
        if axis and name:
            self.exact[name.replace("\\.", ".")] = axis
        elif axis and glob:
            self.globs.append((glob, axis))

    def axis_of(self, name: str) -> str | None:
        if name in self.exact:
            return self.exact[name]
        return next((axis for glob, axis in self.globs if fnmatch.fnmatchcase(name, glob)), None)


def about(path: Path) -> StoredRun:
    """What the head of a file says about its run; where it is damaged, that is little."""
    with suppress(InputError, OSError):
        for record in records(path, [], _HEAD):
            for key, value in whole_fields(record):
                if key == _RUN and isinstance(value, bytes):
                    return _run_of(value)
    return StoredRun("", None, None, has_metrics=True)


def _run_of(record: bytes) -> StoredRun:
    said = {key: value.decode("utf-8", "replace") for key, value in whole_fields(record) if isinstance(value, bytes)}
    project = said.get(_PROJECT)
    started = message_time(record, _START_TIME)
    names = (project,) if project else ()
    return StoredRun(
        said.get(_RUN_ID, ""), said.get(_DISPLAY_NAME) or None, started, has_metrics=True, experiment=names
    )


def history_of(path: Path) -> Reading:
    """The logged scalars. Raises InputError where the file holds none."""
    run: StoredRun | None = None
    skipped: list[Skipped] = []
    axes = _Axes()
    columns = Columns()
    given: dict[str, Any] = {}
    started: float | None = None
    for record in records(path, skipped):
        for key, value in whole_fields(record):
            if not isinstance(value, bytes):
                continue
            if key == _HISTORY:
                _add_row(columns, axes, value)
            elif key == _METRIC:
                axes.add(value)
            elif key == _CONFIG:
                _add_config(given, value)
            elif key == _RUN:
                run = _run_of(value)
                for config in (content for field, content in whole_fields(value) if field == _RUN_CONFIG):
                    _add_config(given, config)
                started = run.started or started
    series = series_of(columns)
    if not series:
        raise EmptyLogError(
            f"{path}: no logged values in this Weights & Biases run", "Was it stopped before the first log?"
        )
    return Reading("wandb", path, series, started=started, run=run, given=given).with_skipped(
        (*skipped, *columns.skipped())
    )


def _add_row(columns: Columns, axes: _Axes, history: bytes) -> None:
    row: dict[str, Any] = {}
    counter: int | None = None
    for key, value in whole_fields(history):
        if key == _ITEM and isinstance(value, bytes):
            name, logged = _item(value)
            row[name] = logged
        elif key == _HISTORY_STEP and isinstance(value, bytes):
            counter = integer(value, 1) or 0  # protobuf leaves a zero out
    own = whole(row.get("_step"))
    counter = own if own is not None else counter
    shared = next((step for key in _GLOBAL_STEPS if (step := whole(row.get(key))) is not None), counter)
    time = number(row.get("_timestamp"))
    for name, leaf in flatten(row):
        logged = number(leaf)
        if logged is None or name in _GLOBAL_STEPS or name.lower() in NOT_METRICS or name.startswith("_"):
            continue
        axis = axes.axis_of(name)
        step = whole(row[axis]) if axis is not None and axis in row else None
        if axis == name or name in axes.exact.values():
            continue
        columns.of(name).add(shared if step is None else step, logged, time, None)


def _add_config(given: dict[str, Any], record: bytes | int) -> None:
    """What a record changes of the run's configuration; what wandb keeps there for itself is left out."""
    for key, item in whole_fields(record) if isinstance(record, bytes) else ():
        if not isinstance(item, bytes) or key not in (_UPDATE, _REMOVE):
            continue
        name, value = _item(item)
        if key == _REMOVE:
            given.pop(name, None)
        elif not name.startswith("_"):
            given[name] = value


def _item(item: bytes) -> tuple[str, Any]:
    name, path, value = "", [], None
    for key, content in whole_fields(item):
        if not isinstance(content, bytes):
            continue
        if key == _KEY:
            name = content.decode("utf-8", errors="replace")
        elif key == _NESTED_KEY:
            path.append(content.decode("utf-8", errors="replace"))
        elif key == _VALUE_JSON:
            try:
                value = json.loads(content)
            except (ValueError, RecursionError):
                value = None
    return name or "/".join(path), value
