"""JSON logs of the OpenMMLab family: mmdetection 2's `*.log.json` and mmengine's `scalars.json`, one row a line.

mmdetection 2 counts iterations within the epoch: `{"mode": "train", "epoch": 3, "iter": 50, ...}`. mmengine's rows
carry a step of the whole run beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gradtrend.errors import EmptyLogError
from gradtrend.ingest.files.regular import buffered
from gradtrend.ingest.files.streams import decoded_head, open_log, whole_lines
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.columns import Columns, series_of
from gradtrend.ingest.reading.counters import UNKNOWN, Ints, whole_run_steps
from gradtrend.ingest.reading.numbers import whole
from gradtrend.ingest.reading.rows import add_row
from gradtrend.model.runlog import Settings, Skipped

_ROW = re.compile(
    rb'^\{.*"mode": ?"(?:train|val)".*"iter": ?\d|^\{.*"iter": ?\d.*"data_time": ?[\d.]'
    rb'|^\{.*"data_time": ?[\d.].*"iter": ?\d'
)
_LENGTH = re.compile(rb"Epoch ?\[\d+\]\[ *\d+/(\d+)\]")
_TEXT_BYTES = 4 * 1024 * 1024  # the first epoch's lines stand within these
_LONGEST_ROW = 8192  # bytes looked through for the keys that tell the format: the pattern goes back and forth
_DIGITS = 5  # rounded to five decimals
_NOT_LOGGED = ("mode", "epoch", "iter", "step", "time", "data_time", "memory", "eta")


def claims(path: Path, head: bytes) -> bool:
    """Whether it is JSON lines with the keys `mode` or `data_time` beside `iter`."""
    text = decoded_head(head)
    return text.lstrip()[:1] == b"{" and any(_ROW.match(line[:_LONGEST_ROW]) for line in text.splitlines()[:20])


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """The training rows, with steps of the whole run. Raises InputError where there is none."""
    skipped: list[Skipped] = []
    rows = [
        (number, row) for number, row in _rows(path, skipped) if row.get("mode", "train") == "train" and "iter" in row
    ]
    if not rows:
        raise EmptyLogError(f"{path}: no training row", "Each row of this format has an `iter` and a loss.")
    columns = Columns()
    for (number, row), step in zip(rows, _steps([row for _, row in rows], _length_beside(path)), strict=True):
        values = {key: value for key, value in row.items() if key not in _NOT_LOGGED}
        add_row(columns, values, None if step == UNKNOWN else int(step), number)
    settings = Settings(framework="mmengine")
    skipped += columns.skipped()
    return (Reading("mmengine", path, series_of(columns), _DIGITS, settings=settings).with_skipped(skipped),)


def _rows(path: Path, skipped: list[Skipped]) -> Iterator[tuple[int, dict[str, Any]]]:
    with open_log(path) as stream:
        for first, chunk in whole_lines(stream, skipped):
            for offset, line in enumerate(chunk.split(b"\n")):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    row = None
                if isinstance(row, dict):
                    yield first + offset, row
                else:
                    skipped.append(Skipped("not a JSON object", line=first + offset))


_LONGEST_LENGTH = 12  # digits: no epoch has more iterations


def _length_beside(path: Path) -> int:
    """Iterations an epoch, which only the text log of the same name says: `Epoch [1][50/7330]`; UNKNOWN without one."""
    text = path.with_name(path.name.removesuffix(".json"))
    if text == path or not text.is_file():
        return UNKNOWN
    with buffered(text) as file:
        match = _LENGTH.search(file.read(_TEXT_BYTES))
    return int(match[1]) if match and len(match[1]) < _LONGEST_LENGTH else UNKNOWN


def _steps(rows: Sequence[dict[str, Any]], length: int) -> Ints:
    """mmengine's own step where each row has one; else from epoch and iteration."""
    own = _whole(rows, "step")
    if (own != UNKNOWN).all():
        return own
    epoch, iteration = _whole(rows, "epoch"), _whole(rows, "iter")
    return whole_run_steps(epoch, iteration, np.full(len(rows), length))


def _whole(rows: Sequence[dict[str, Any]], key: str) -> Ints:
    values = [whole(row.get(key)) for row in rows]
    return np.array([UNKNOWN if value is None else value for value in values], dtype=np.int64)
