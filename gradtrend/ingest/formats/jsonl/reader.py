"""metrics.jsonl and its like: one JSON object a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from gradtrend.errors import InputError
from gradtrend.ingest.files.json_document import parse_long
from gradtrend.ingest.files.streams import decoded_head, first_lines, open_log, open_stream, plain_name, whole_lines
from gradtrend.ingest.formats.jsonl.chunks import ChunkReader
from gradtrend.ingest.limits import MOST_METRICS
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.columns import Columns, names_left_out, points_of, settled
from gradtrend.ingest.reading.names import name_metric
from gradtrend.ingest.reading.numbers import number
from gradtrend.ingest.reading.rows import NOT_METRICS, add_row, flatten, settings_in, step_of, step_or_epoch, sums_up
from gradtrend.model.runlog import Settings, Skipped
from gradtrend.model.words import Role

_NAME = re.compile(r"(?P<stem>[^.]*).*\.(?:jsonl|ndjson|jsonlines)$", re.IGNORECASE)
_LINES_LOOKED_AT = 20
_LOG_STEMS = frozenset({"metrics", "log", "train_log", "train", "history"})


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        value = parse_long(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def claims(path: Path, head: bytes) -> bool:
    """Whether the first full line is a JSON object of metrics, or the file is named metrics.jsonl."""
    named = _NAME.match(plain_name(path))
    lines = first_lines(decoded_head(head), _LINES_LOOKED_AT)
    rows = (row for row in map(_row, lines) if row is not None)
    if not any(map(_is_metrics, rows)):
        return named is not None and named["stem"].lower() in _LOG_STEMS
    return named is not None or sum(_row(line) is not None for line in lines) >= max(1, len(lines) - 1)


def _is_metrics(row: dict[str, Any]) -> bool:
    """A row with a step and a number, or with a gradient norm."""
    numbers = [k for k, v in flatten(row) if k.lower() not in NOT_METRICS and number(v) is not None]
    if step_of(row) is not None:
        return bool(numbers)
    return any(name_metric(k).role is Role.GRAD_NORM for k in numbers)


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """Every number of every row, NaN and inf included.

    Raises InputError where the file cannot be opened, or no line is a JSON object.
    """
    with open_log(path) as stream:
        return (_read(stream, path),)


def read_stream(stream: BinaryIO) -> Sequence[Reading]:
    """The rows on standard input; as `read`."""
    return (_read(open_stream(stream), Path("-")),)


def _read(stream: BinaryIO, path: Path) -> Reading:
    lost: list[Skipped] = []  # lines too long, and what lies behind damage in a compressed file
    bad: list[Skipped] = []
    reader = ChunkReader()
    parts: dict[str, list[pl.DataFrame]] = {}
    setup: dict[str, Any] = {}
    rows = False
    left_out = 0
    for first, chunk in whole_lines(stream, lost):
        points = reader.points(chunk, first)
        if points is None:
            points = read_rows(chunk, first, bad, setup)
        rows |= points is not None
        for metric, frame in (points or {}).items():
            if metric in parts or len(parts) < MOST_METRICS:
                parts.setdefault(metric, []).append(frame)
            else:
                left_out += frame.height
    if not rows:
        raise InputError(f"{path}: no line is a JSON object", "A metrics.jsonl has one JSON object a line.")
    lost += names_left_out(left_out)
    series = settled({metric: pl.concat(frames) for metric, frames in parts.items()})
    return Reading("jsonl", path, series, settings=_settings(setup), given=setup).with_skipped((*bad, *lost))


def _settings(setup: dict[str, Any]) -> Settings:
    """What rows say of how the run was set up; how that is read is loaded where they say anything."""
    if not setup:
        return Settings()
    from gradtrend.ingest.settings.names import settings_from

    return settings_from(setup)


def read_rows(
    chunk: bytes, first_line: int, bad: list[Skipped], setup: dict[str, Any] | None = None
) -> dict[str, pl.DataFrame] | None:
    """The points of a chunk read row by row, None where no line is an object; what is none is added to `bad`.

    The settings that a row repeats are added to `setup`, if they are the first.
    """
    columns = Columns()
    rows = 0
    for line, raw in enumerate(chunk.split(b"\n"), start=first_line):
        text = raw.strip(b" \t\r\0")  # zeros stand where a machine went down before it had written
        if not text:
            continue
        row = _row(text) or _row(text.removesuffix(b","))  # one line of a list
        if row is None:
            cut = not chunk.endswith(b"\n") and chunk.endswith(raw)
            bad.append(Skipped("truncated" if cut else "not a JSON object", line=line))
            continue
        rows += 1
        if not sums_up(row):
            add_row(columns, row, step_or_epoch(row), line)
        if setup is not None and not setup:
            setup |= settings_in(row)
    bad += columns.skipped()
    return points_of(columns) if rows else None
