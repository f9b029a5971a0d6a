"""Tables with a header: Lightning's metrics.csv, pandas, Keras, MLflow, Weights & Biases and TensorBoard downloads."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path, PurePath
from string import whitespace
from typing import BinaryIO

from gradtrend.errors import EmptyLogError, InputError
from gradtrend.ingest.files.streams import decoded_head, open_log, open_stream, plain_name, whole_lines
from gradtrend.ingest.formats.csv.bare import Row, named_table
from gradtrend.ingest.formats.csv.cells import EMPTY, cell_number, split
from gradtrend.ingest.formats.csv.empty_cells import WideRows
from gradtrend.ingest.formats.csv.header import (
    Header,
    Line,
    first_header,
    is_download,
    is_training,
    long_columns,
    metric_names,
    with_step,
)
from gradtrend.ingest.limits import MOST_METRICS
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.columns import Column, Columns, names_left_out, series_of
from gradtrend.ingest.reading.file_names import metric_of_file
from gradtrend.ingest.reading.numbers import could_be_cut, parse_number
from gradtrend.ingest.reading.rows import EARLIEST_TIME, FIRST_MILLISECONDS, counted, held_out_part, named_by_part
from gradtrend.model.runlog import Skipped

_LOG_SUFFIXES = (".csv", ".tsv", ".txt", ".log", ".dat", "")
_TOLD_BY = 11  # rows
_FIRST_ROWS = 50  # by which the column of steps is told
_COMPARED = 1000  # rows before the last whose cells show how a column is written
_CUT = "?"  # in place of a number of which the end is missing; text, since an empty cell may be NaN


def claims(path: Path, head: bytes) -> bool:
    """Whether the first line names a loss, a gradient norm or a TensorBoard table, and the rows fit it."""
    header, rows = _begun(path, head, fewest=2)
    if header is None or not rows or not (is_training(header) or is_download(header) or long_columns(header)):
        return False
    return sum(_fits(row, header) for row in rows) >= len(rows) / 2


def holds(path: Path, head: bytes, names: Sequence[str]) -> bool:
    """Whether the first line names one of the columns that the user wants, and most rows have a number there."""
    header, rows = _begun(path, head, fewest=1)
    wanted = set(names)
    if header is None or wanted.isdisjoint((*header.names, *metric_names(header))):
        return False
    places = [i for i in header.metrics if header.names[i] in wanted] or header.metrics
    fitting = [[row[i] for i in places] for row in rows if len(row) == len(header.names)]
    filled = (any(cell_number(cell, header.separator) is not None for cell in cells) for cells in fitting)
    return sum(filled) * 2 > len(rows)


def _begun(path: Path, head: bytes, fewest: int) -> tuple[Header | None, list[list[str]]]:
    """The header and the first rows of what may be a table."""
    text = decoded_head(head)
    if not head or b"\0" in text[:4096] or text[:1] in (b"{", b"["):
        return None, []
    if PurePath(plain_name(path)).suffix.lower() not in _LOG_SUFFIXES:
        return None, []
    lines = ((0, line, True) for line in text.decode("utf-8", errors="replace").splitlines() if line.strip())
    header, before = first_header(lines, fewest)
    if header is None:
        return None, []
    return header, [split(line, header.separator) for _, line, _ in islice(chain(before, lines), _TOLD_BY)]


def _fits(row: list[str], header: Header) -> bool:
    numeric = sum(cell_number(cell, header.separator) is not None or cell in EMPTY for cell in row)
    return len(row) == len(header.names) and (numeric * 2 > len(row) or long_columns(header) is not None)


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """Every number of every row. Raises InputError where there is no header, and the user names no columns, or no row
    fits it.
    """
    with open_log(path) as stream:
        return (_read(stream, path, options.columns),)


def read_stream(stream: BinaryIO, columns: Sequence[str] = ()) -> Sequence[Reading]:
    """The table on standard input; as `read`."""
    return (_read(open_stream(stream), Path("-"), columns),)


def _read(stream: BinaryIO, path: Path, columns: Sequence[str]) -> Reading:
    skipped: list[Skipped] = []
    lines = _lines(stream, skipped)
    header, rows = named_table(lines, columns, path, skipped) if columns else _table(lines, path, skipped)
    first = list(islice(rows, _FIRST_ROWS))
    with_step(header, [cells for _, cells in first])
    rows = chain(first, rows)
    long = None if columns else long_columns(header)
    series = series_of(_long_columns(rows, header, long, skipped) if long else _wide_columns(rows, header, skipped))
    if not series:
        raise EmptyLogError(f"{path}: no row of numbers fits the header")
    return Reading("csv", path, series).with_skipped(skipped)


def _lines(stream: BinaryIO, skipped: list[Skipped]) -> Iterator[Line]:
    for number, chunk in whole_lines(stream, skipped):
        separator = b"\n" if b"\n" in chunk else b"\r"
        *ended, last = chunk.split(separator)
        for offset, line in enumerate(ended):
            yield number + offset, line.decode("utf-8", errors="replace").rstrip("\r"), True
        if last.strip():
            yield number + len(ended), last.decode("utf-8", errors="replace"), False


def _table(lines: Iterator[Line], path: Path, skipped: list[Skipped]) -> tuple[Header, Iterator[Row]]:
    """The header in the first line, and the rows below it."""
    header, before = first_header(lines, fewest=1)
    if header is None:
        raise InputError(
            f"{path}: no header names the columns",
            "The first line must name them: step,loss,grad_norm. Where none does, --columns step,loss,grad_norm does.",
        )
    if is_download(header):
        header.names[2] = metric_of_file(path)
    return header, _rows(chain(before, lines), header, skipped)


def _rows(lines: Iterable[Line], header: Header, skipped: list[Skipped]) -> Iterator[Row]:
    separator, width = header.separator, len(header.names)
    ends: deque[str] = deque(maxlen=_COMPARED)
    blank = f"{whitespace}{separator}" if width > 1 else None  # a column alone may be empty on purpose
    for number, line, ended in lines:
        if not line.strip(blank) or line.startswith("#"):  # a row of nothing, a remark
            continue
        cells = split(line, separator) if '"' in line else [cell.strip() for cell in line.split(separator)]
        if len(cells) != width:
            reason = f"{len(cells)} cells where the header has {width}" if ended else "truncated"
            skipped.append(Skipped(reason, line=number))
        elif cells != header.named:  # a header repeated is no loss: a resumed run writes its own
            if not ended and could_be_cut(cells[-1], ends):
                skipped.append(Skipped("truncated in its last number", line=number))
                cells[-1] = _CUT
            ends.append(cells[-1])
            yield number, cells


def _place(cells: list[str], header: Header) -> tuple[int | None, float | None]:
    """Step and time of a row. An epoch stands for the step where the table has no column of steps.

    In one that has, a row with an empty step is not placed by its epoch (unlike in `rows.step_or_epoch`): the epochs
    of Lightning's validation rows would go back to the start of the run.
    """
    counter = header.epoch if header.step is None else header.step
    step = counted(cells[counter]) if counter is not None else None
    time = parse_number(cells[header.time]) if header.time is not None else None
    if time is None or time < EARLIEST_TIME:  # smaller: seconds since the start
        return step, None
    return step, time / 1000 if time > FIRST_MILLISECONDS else time


def _wide_columns(rows: Iterator[Row], header: Header, skipped: list[Skipped]) -> dict[str, Column]:
    """The points of a table with a column a metric; of those beyond `MOST_METRICS` nothing is kept."""
    left_out = len(header.metrics) - MOST_METRICS
    names = metric_names(header)[:MOST_METRICS]
    del header.metrics[MOST_METRICS:]
    seen = 0
    wide: dict[str | None, WideRows] = {None: WideRows(names)}
    number_in = parse_number if header.separator == "," else partial(cell_number, separator=header.separator)
    for line, cells in rows:
        seen += 1
        step, time = _place(cells, header)
        row = [cells[i] for i in header.metrics]
        part = held_out_part(cells[header.part]) if header.part is not None else None
        if part not in wide:
            wide[part] = WideRows([named_by_part(name, part or "") for name in names])
        wide[part].add(step, time, line, [number_in(cell) for cell in row], [cell in EMPTY for cell in row])
    skipped += names_left_out(max(0, left_out) * seen)
    return {name: column for rows_of in wide.values() for name, column in rows_of.columns().items()}


def _long_columns(
    rows: Iterator[Row], header: Header, places: tuple[int, int], skipped: list[Skipped]
) -> dict[str, Column]:
    """The points of a table with a row a value; `places` are those of its name and of the value."""
    name, value = places
    columns = Columns()
    for number, cells in rows:
        step, time = _place(cells, header)
        # A row of a long table is there because the value was logged: an empty one was NaN.
        logged = cell_number(cells[value], header.separator) if cells[value] not in EMPTY else float("nan")
        if logged is not None:
            part = held_out_part(cells[header.part]) if header.part is not None else None
            metric = cells[name] if part is None else named_by_part(cells[name], part)
            columns.of(metric).add(step, logged, time, number)
    skipped += columns.skipped()
    return columns
