"""Chunks of JSON lines -> points, a whole chunk at a time: many times as fast as one row after another.

polars parses the chunk, and its parser is strict: a line or a number that is no JSON is an error, not a guess. What it
does not say is told by counting: where as many cells are filled as there are keys in the text, no key was unknown,
repeated or null; where as many cells hold a stand-in as NaNs were replaced, each NaN stood for a number. A chunk that
does not add up is refused, to be read row by row. Either way the result is the same.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from gradtrend.ingest.reading.rows import (
    EARLIEST_TIME,
    FIRST_MILLISECONDS,
    LONG_NAMES,
    LONG_VALUES,
    NOT_METRICS,
    PART_KEYS,
    STEP_KEYS,
    SUMMARY_KEY,
    TIME_KEYS,
    held_out_part,
    is_pair,
)

# Below this the fixed costs outweigh the rows'.
LEAST_BYTES = 16 * 1024
# Enough lines to know the columns of most logs; looking through a whole chunk for them takes longer than reading it.
_SAMPLE_BYTES = 8 * 1024
# After so many refusals in a row the log is of a kind that has to be read row by row: trying costs half as much again.
MOST_REFUSALS = 3
# JSON has no NaN; the parser is given these numbers instead.
_STAND_INS = (
    (b"NaN", b"1.0278641529385067e+308", math.nan),
    (b"-Infinity", b"1.0278641529385069e+308", -math.inf),
    (b"Infinity", b"1.0278641529385071e+308", math.inf),
)
_LEAST_STAND_IN = min(float(stand_in) for _, stand_in, _ in _STAND_INS)
# Cells of the table for each value in the text: a log in which every row has other names would fill the memory.
_MOST_CELLS_A_KEY = 200
_EXACT_INTEGERS = 1 << 53  # beyond these a float no longer holds every integer
_COUNTERS = (*STEP_KEYS, "epoch")
_INTEGERS = frozenset({*_COUNTERS, *TIME_KEYS})
_KEY = re.compile(rb'"([^"\\]*)":')
_NEWLINE, _SPACE, _QUOTE, _COLON, _BRACE = b'\n ":{'
# Text that `numbers.parse_number` may take for a number.
_NUMBER_LIKE = (
    r"(?i)^[\s\x1c-\x1f]*[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|nan(?:\(ind\))?|inf(?:inity)?"
    r"|1\.#(?:ind|inf|qnan))[\s\x1c-\x1f]*$"
)


class _RefusedError(Exception):
    """The chunk is not as simple as it must be."""


class ChunkReader:
    """Reads the chunks of one log. The columns that it has are remembered from one chunk to the next."""

    def __init__(self) -> None:
        self._schema: dict[str, pl.DataType] = {}
        self._refusals = 0

    def points(self, chunk: bytes, first_line: int) -> dict[str, pl.DataFrame] | None:
        """The points of a chunk of whole lines, all of them rows of metrics; None where it must be read row by row.

        A table for each metric, as a reading has them; a value is null where null was logged.
        """
        if len(chunk) < LEAST_BYTES or self._refusals >= MOST_REFUSALS:
            return None
        try:
            points = self._points(chunk, first_line)
        except (_RefusedError, pl.exceptions.PolarsError):
            self._schema = {}
            self._refusals += 1
            return None
        self._refusals = 0
        return points

    def _points(self, chunk: bytes, first_line: int) -> dict[str, pl.DataFrame]:
        height, keys = _rows_and_keys(chunk)
        text, replaced = _without_nonfinite(chunk)
        table = self._parsed(text, height, keys)
        if SUMMARY_KEY in table.columns:
            raise _RefusedError  # a row that is none of the run's
        whole = keys == height * table.width  # each row has each column: a null in the table is one in the text
        _check_texts(table, whole)
        if any(key in table.columns for key in LONG_VALUES) and any(key in table.columns for key in LONG_NAMES):
            raise _RefusedError  # one value a row
        if replaced:
            table = _with_nonfinite(table, replaced)
        numbers = pl.int_range(first_line, first_line + height, dtype=pl.Int64).alias("line")
        places = table.select(_step(table), _time(table), numbers)
        metrics = [name for name, dtype in table.schema.items() if _is_metric(name, dtype)]
        points: dict[str, pl.DataFrame] = {}
        for name in _as_logged(metrics, table, chunk, whole):
            value = table[name].cast(pl.Float64)
            rows = places.clone().insert_column(1, value.alias("value"))  # the columns are shared, not copied
            points[name] = rows.filter(value.is_not_null()) if value.null_count() and not whole else rows
        return points

    def _parsed(self, text: bytes, rows: int, keys: int) -> pl.DataFrame:
        """The chunk as a table, by the columns known so far, else with those of its first lines, else with its own."""
        for sample in (b"", text[: text.find(b"\n", _SAMPLE_BYTES) + 1], text):
            if sample is text and rows * _names_in(text) > _MOST_CELLS_A_KEY * keys:
                raise _RefusedError  # before the parser makes a column of each name
            if sample:
                self._learn(sample)
            elif not self._schema:
                continue
            if rows * len(self._schema) > _MOST_CELLS_A_KEY * keys:
                raise _RefusedError
            try:
                table = pl.read_ndjson(io.BytesIO(text), schema=self._schema)
            except pl.exceptions.ComputeError:
                continue
            cells = rows * table.width
            filled = cells - sum(table.null_count().row(0))
            if table.height == rows and (keys == filled or keys == cells == filled + text.count(b"null")):
                return table
        raise _RefusedError

    def _learn(self, text: bytes) -> None:
        for name, dtype in pl.read_ndjson(io.BytesIO(text), infer_schema_length=None).schema.items():
            known = self._schema.get(name, pl.Null())
            self._schema[name] = _joined(known, pl.Float64() if name not in _INTEGERS and dtype.is_integer() else dtype)


def _rows_and_keys(chunk: bytes) -> tuple[int, int]:
    """The lines of a chunk and the keys on them, if there is one `{` a line, no list, and no space before a colon."""
    characters = np.frombuffer(chunk, np.uint8)
    rows = int(np.count_nonzero(characters == _NEWLINE)) + (not chunk.endswith(b"\n"))
    braces = int(np.count_nonzero(characters == _BRACE))
    before, colons = characters[:-1], characters[1:] == _COLON
    if braces != rows or b"[" in chunk or ((before <= _SPACE) & colons).any():
        raise _RefusedError
    return rows, int(np.count_nonzero((before == _QUOTE) & colons))


def _names_in(text: bytes) -> int:
    """How many different keys a text has, about: one more for each text value that looks like one."""
    return len(set(_KEY.findall(text)))


def _joined(known: pl.DataType, found: pl.DataType) -> pl.DataType:
    """The type that holds what two chunks have in one column."""
    if found == known or found == pl.Null:
        return known
    if known == pl.Null and found in (pl.Int64, pl.Float64, pl.String, pl.Boolean):
        return found
    if {known, found} == {pl.Int64(), pl.Float64()}:
        return pl.Float64()
    raise _RefusedError


def _is_metric(name: str, dtype: pl.DataType) -> bool:
    return dtype in (pl.Float64, pl.Int64, pl.Null) and name.lower() not in NOT_METRICS


def _without_nonfinite(chunk: bytes) -> tuple[bytes, int]:
    """The chunk with stand-ins for NaN and infinities, and how many."""
    replaced = 0
    for word, stand_in, _ in _STAND_INS:
        if word.strip(b"-")[:1] in chunk and word in chunk:  # looking for one byte is many times as fast
            *pieces, end = chunk.split(word)
            stands = [piece.endswith((b":", b": ")) for piece in pieces]
            replaced += sum(stands)
            joints = (piece + (stand_in if here else word) for piece, here in zip(pieces, stands, strict=True))
            chunk = b"".join((*joints, end))
    return chunk, replaced


def _with_nonfinite(table: pl.DataFrame, replaced: int) -> pl.DataFrame:
    """The table with its stand-ins turned back; refused where there are not as many as replaced words."""
    restored: list[pl.Series] = []
    for column in table.iter_columns():
        if column.dtype != pl.Float64 or not _reaches(column, _LEAST_STAND_IN):
            continue
        numbers = column
        for _, stand_in, value in _STAND_INS:
            here = column == float(stand_in)
            replaced -= int(here.sum())
            numbers = numbers.set(here, value)
        restored.append(numbers)
    if replaced:
        raise _RefusedError
    return table.with_columns(restored)


def _reaches(numbers: pl.Series, limit: float) -> bool:
    largest = numbers.max()
    return isinstance(largest, float) and largest >= limit


def _check_texts(table: pl.DataFrame, whole: bool) -> None:
    """Refuse text that may be a number, counters with their end, rows of held-out data, and logged nulls among text and
    truth values.
    """
    for column in table:
        if column.dtype == pl.String and column.str.contains(_NUMBER_LIKE).any():
            raise _RefusedError
        if column.dtype == pl.String and (column.name in STEP_KEYS or is_pair(column.name)):
            raise _RefusedError
        if column.dtype == pl.String and column.name in PART_KEYS and any(map(held_out_part, column.unique())):
            raise _RefusedError
        if whole and column.dtype in (pl.String, pl.Boolean) and column.null_count():
            raise _RefusedError


def _step(table: pl.DataFrame) -> pl.Expr:
    """The first counter of each row that is a whole number, then the epoch, as `rows.step_or_epoch` has them."""
    steps = []
    for key in _number_columns(table, _COUNTERS):
        counter = pl.col(key)
        if table.schema[key] == pl.Int64:
            steps.append(counter)
        elif key != "epoch":
            steps.append(pl.when(counter == counter.floor()).then(counter).cast(pl.Int64))
        elif table.select(pl.coalesce(*steps, pl.lit(None)).is_null().any()).item():
            raise _RefusedError  # 1 and 1.0 are told apart there
    return pl.coalesce(*steps, pl.lit(None, dtype=pl.Int64)).alias("step")


def _time(table: pl.DataFrame) -> pl.Expr:
    """Seconds since the epoch, as `rows.time_of` has them."""
    times = []
    # A column, since polars takes the inverse of a single number, which rounds; not from numpy, which loads numpy.ma.
    thousand = pl.lit(pl.Series([1000.0]).new_from_index(0, table.height))
    for key in _number_columns(table, TIME_KEYS):
        time = pl.col(key).cast(pl.Float64)
        seconds = pl.when(time > FIRST_MILLISECONDS).then(time / thousand).otherwise(time)
        times.append(pl.when(time > EARLIEST_TIME).then(seconds))
    return pl.coalesce(*times, pl.lit(None, dtype=pl.Float64)).alias("time")


def _number_columns(table: pl.DataFrame, keys: Sequence[str]) -> list[str]:
    """Those of the columns that hold numbers; refused where one is NaN or too large for a float to hold it exactly."""
    names = [key for key in keys if key in table.columns and table.schema[key].is_numeric()]
    if not all(table[name].is_between(-_EXACT_INTEGERS, _EXACT_INTEGERS, "none").all() for name in names):
        raise _RefusedError
    return names


def _as_logged(metrics: list[str], table: pl.DataFrame, chunk: bytes, whole: bool) -> list[str]:
    """Those of the metrics that have points, in the order in which the text first mentions them.

    `whole` says that each row mentions all.
    """
    first = [0] * len(metrics) if whole else table.select(pl.col(metrics).is_not_null().arg_max()).row(0)
    first_rows: dict[int, set[str]] = {}
    for name, row in zip(metrics, first, strict=True):
        first_rows.setdefault(row or 0, set()).add(name)
    names: list[str] = []
    for row in sorted(first_rows):
        line = json.loads(chunk.split(b"\n", row + 1)[row])
        names += [name for name in line if name in first_rows[row]]
    return names
