"""Tables with a header: Lightning's metrics.csv, pandas, Keras, MLflow, Weights & Biases and TensorBoard downloads."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from gradtrend.errors import EmptyLogError, InputError
from gradtrend.ingest.files.streams import decoded_head, open_log, plain_name, whole_lines
from gradtrend.ingest.formats.csv.empty_cells import WideRows
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.columns import Column, series_of
from gradtrend.ingest.reading.file_names import metric_of_file
from gradtrend.ingest.reading.names import name_metric
from gradtrend.ingest.reading.numbers import parse_number, whole
from gradtrend.ingest.reading.rows import LONG_NAMES, LONG_VALUES, NOT_METRICS, STEP_KEYS
from gradtrend.model.runlog import Skipped
from gradtrend.model.words import Role

_SEPARATORS = (",", "\t", ";")
_BY_PREFERENCE = ("global_step", "trainer/global_step", *STEP_KEYS, "iterations", "training_step")
_LONG_NAMES = frozenset(map(str.lower, LONG_NAMES))
_LONG_VALUES = frozenset(map(str.lower, LONG_VALUES))
_TIMES = frozenset({"wall time", "wall_time", "timestamp", "_timestamp", "time"})
_EMPTY = frozenset({"", "NA", "N/A", "-", "None", "null"})  # not logged on this row; Keras writes NA
_BOUNDS = re.compile(r"__(?:MIN|MAX|STEP)$")  # columns that Weights & Biases adds to a download
_DECIMAL_COMMA = re.compile(r"^[+-]?\d+,\d+(?:[eE][+-]?\d+)?$")
_LOG_SUFFIXES = (".csv", ".tsv", ".txt", ".log", "")


@dataclass(slots=True)
class _Header:
    names: list[str]
    separator: str
    step: int | None
    epoch: int | None
    time: int | None
    metrics: list[int] = field(default_factory=list)


def _split(line: str, separator: str) -> list[str]:
    try:
        cells = next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # a carriage return within the line, a field without end
        cells = line.split(separator)
    return [cell.strip() for cell in cells]


def _header(line: str) -> _Header | None:
    """The header that a line is, or None: columns with names of which one is a counter or a metric."""
    best = max(_SEPARATORS, key=line.count)
    names = _split(line.lstrip("\ufeff"), best)
    if len(names) < 2 or any(parse_number(name) is not None for name in names):
        return None
    low = [name.lower().replace(" ", "_") if name.lower() not in _TIMES else name.lower() for name in names]
    step = next((low.index(key) for key in _BY_PREFERENCE if key in low), None)
    epoch = next((low.index(key) for key in ("epoch", "epochs") if key in low), None)
    time = next((i for i, name in enumerate(low) if name in _TIMES), None)
    metrics = [
        i
        for i, name in enumerate(names)
        if name
        and i not in (epoch if step is None else step, time)
        and low[i] not in NOT_METRICS
        and not _BOUNDS.search(name)
    ]
    return _Header(names, best, step, epoch, time, metrics)


def claims(path: Path, head: bytes) -> bool:
    """Whether the first line names a loss, a gradient norm or a TensorBoard table, and the rows fit it."""
    text = decoded_head(head)
    if not head or b"\0" in text[:4096] or text[:1] in (b"{", b"["):
        return False
    if PurePath(plain_name(path)).suffix.lower() not in _LOG_SUFFIXES:
        return False
    lines = [line for line in text.decode("utf-8", errors="replace").splitlines() if line.strip()]
    header = _header(lines[0]) if len(lines) > 1 else None
    if header is None or not (_is_training(header) or _is_download(header) or _long(header)):
        return False
    rows = [_split(line, header.separator) for line in lines[1:12]]
    return sum(_fits(row, header) for row in rows) >= len(rows) / 2


def _fits(row: list[str], header: _Header) -> bool:
    numeric = sum(_number(cell, header.separator) is not None or cell in _EMPTY for cell in row)
    return len(row) == len(header.names) and (numeric * 2 > len(row) or _long(header) is not None)


def _is_training(header: _Header) -> bool:
    roles = {name_metric(header.names[i].rsplit(" - ", 1)[-1]).role for i in header.metrics}
    return bool(roles & {Role.GRAD_NORM, Role.LOSS}) and (
        header.step is not None or header.epoch is not None or len(header.metrics) > 1
    )


def _is_download(header: _Header) -> bool:
    """TensorBoard's own: `Wall time,Step,Value`, the metric only in the file's name."""
    return [name.lower() for name in header.names] == ["wall time", "step", "value"]


def _long(header: _Header) -> tuple[int, int] | None:
    """The columns of a table of one row a value: (name, value); None for any other."""
    low = [name.lower() for name in header.names]
    name = next((i for i, column in enumerate(low) if column in _LONG_NAMES), None)
    value = next((i for i, column in enumerate(low) if column in _LONG_VALUES), None)
    return None if name is None or value is None or header.step is None else (name, value)


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """Every number of every row. Raises InputError where there is no header or no row fits it."""
    skipped: list[Skipped] = []
    lines = _lines(path, skipped)
    first = next(((number, line) for number, line in lines if line.strip()), None)
    header = _header(first[1]) if first else None
    if header is None:
        raise InputError(f"{path}: no header names the columns", "The first line must name them: step,loss,grad_norm")
    if _is_download(header):
        header.names[2] = metric_of_file(path)
    rows = _rows(lines, header, skipped)
    long = _long(header)
    columns = _long_columns(rows, header, *long) if long else _wide_columns(rows, header)
    series = series_of(columns)
    if not series:
        raise EmptyLogError(f"{path}: no row of numbers fits the header")
    return (Reading("csv", path, series).with_skipped(skipped),)


def _lines(path: Path, skipped: list[Skipped]) -> Iterator[tuple[int, str]]:
    with open_log(path) as stream:
        for number, chunk in whole_lines(stream, skipped):
            separator = b"\n" if b"\n" in chunk else b"\r"
            for offset, line in enumerate(chunk.split(separator)):
                yield number + offset, line.decode("utf-8", errors="replace").rstrip("\r")


def _rows(lines: Iterator[tuple[int, str]], header: _Header, skipped: list[Skipped]) -> Iterator[tuple[int, list[str]]]:
    for number, line in lines:
        if not line.strip():
            continue
        cells = (
            _split(line, header.separator) if '"' in line else [cell.strip() for cell in line.split(header.separator)]
        )
        if len(cells) == len(header.names) and cells != header.names:
            yield number, cells
        elif cells != header.names:  # a header repeated is no loss: a resumed run writes its own
            skipped.append(Skipped(f"{len(cells)} cells where the header has {len(header.names)}", line=number))


def _number(cell: str, separator: str) -> float | None:
    if separator == ";" and _DECIMAL_COMMA.match(cell):
        cell = cell.replace(",", ".")
    return parse_number(cell)


def _place(cells: list[str], header: _Header) -> tuple[int | None, float | None]:
    """Step and time of a row. An epoch stands for the step where the table has no column of steps.

    In one that has, a row with an empty step is not placed by its epoch (unlike in `rows.step_or_epoch`): the epochs
    of Lightning's validation rows would go back to the start of the run.
    """
    counter = header.epoch if header.step is None else header.step
    step = whole(cells[counter]) if counter is not None else None
    time = parse_number(cells[header.time]) if header.time is not None else None
    return step, time if time is not None and time > 1e8 else None  # smaller: seconds since the start


def _wide_columns(rows: Iterator[tuple[int, list[str]]], header: _Header) -> dict[str, Column]:
    wide = WideRows([_metric_name(header.names[i]) for i in header.metrics])
    for number, cells in rows:
        step, time = _place(cells, header)
        row = [cells[i] for i in header.metrics]
        values = [_number(cell, header.separator) for cell in row]
        wide.add(step, time, number, values, [cell in _EMPTY for cell in row])
    return wide.columns()


def _metric_name(name: str) -> str:
    """`run name - train/loss`, as Weights & Biases downloads call a column, without the run's name."""
    tail = name.rsplit(" - ", 1)[-1]
    return tail if tail != name and name_metric(tail).role is not Role.OTHER else name


def _long_columns(rows: Iterator[tuple[int, list[str]]], header: _Header, name: int, value: int) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for number, cells in rows:
        step, time = _place(cells, header)
        # A row of a long table is there because the value was logged: an empty one was NaN.
        logged = _number(cells[value], header.separator) if cells[value] not in _EMPTY else float("nan")
        if logged is not None:
            columns.setdefault(cells[name], Column()).add(step, logged, time, number)
    return columns
