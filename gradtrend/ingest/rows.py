"""Logged rows (dicts of one step) -> the series of a reading. Shared by every adapter that reads rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

# What a row's own counter is called, best first. `epoch` counts only where nothing finer is logged.
STEP_KEYS = (
    "step", "global_step", "_step", "trainer/global_step", "train/global_step", "current_step", "train_step",
    "steps", "iteration", "iter", "it", "num_updates", "update", "batch", "i", "n_iter", "global_iter", "train_steps",
    "completed_steps", "current_steps", "Step", "Iteration", "time/total_timesteps", "total_timesteps",
    "timesteps_total", "training_iteration", "time/iterations",
)  # fmt: skip
INT64_LIMIT = 1 << 63  # steps and times are 64-bit integers; text, JSON and SQLite can hold larger ones
EARLIEST_TIME = 1e8  # seconds, in 1973: smaller numbers count from the start of the run
FIRST_MILLISECONDS = 1e11  # in seconds the year 5138, so these are milliseconds, as MLflow and JavaScript write
TIME_KEYS = ("timestamp", "_timestamp", "time", "wall_time", "_runtime")
NOT_METRICS = frozenset({*map(str.lower, STEP_KEYS), *TIME_KEYS, "current_epoch", "seed", "rank", "pid", "version"})
# Keys of a row of one value: {"name": "loss", "value": 1.5, "step": 3}; what tells rows of one name apart.
LONG_NAMES = ("metric", "metric_name", "metricName", "name", "key", "tag")
LONG_VALUES = ("value", "metric_value", "metricValue")
_PARTS = ("split", "phase", "stage", "mode", "subset", "tag")
_NO_VALUES = NOT_METRICS | {"epoch"}  # beside the value of a row of one
# Spellings of a non-finite number in text, as C, C++, Python, Java, JavaScript and Windows print them.
NONFINITE_WORDS = {
    "nan": math.nan, "-nan": math.nan, "+nan": math.nan, "nan(ind)": math.nan, "-nan(ind)": math.nan,
    "1.#ind": math.nan, "-1.#ind": math.nan, "1.#qnan": math.nan, "1.#inf": math.inf, "-1.#inf": -math.inf,
    "inf": math.inf, "+inf": math.inf, "-inf": -math.inf,
    "infinity": math.inf, "+infinity": math.inf, "-infinity": -math.inf,
}  # fmt: skip


@dataclass(slots=True)
class Column:
    """The points of one metric while a log is read, in the order logged."""

    steps: list[int | None] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)
    times: list[float | None] = field(default_factory=list)
    lines: list[int | None] = field(default_factory=list)
    nulls: int = 0

    def add(self, step: int | None, value: float | None, time: float | None, line: int | None) -> None:
        """Append one point; a value of None is a logged null."""
        self.steps.append(step)
        self.values.append(value)
        self.times.append(time)
        self.lines.append(line)
        self.nulls += value is None


def number(value: Any) -> float | None:
    """A logged scalar as float: numbers, numeric strings and every spelling of nan and inf; else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:  # an int beyond 1.8e308
            return math.inf if value > 0 else -math.inf
    if isinstance(value, str):
        return parse_number(value)
    return None


def parse_number(text: str) -> float | None:
    """A number written as text, or None. Python's underscores in digits are not numbers in a log."""
    text = text.strip()
    word = NONFINITE_WORDS.get(text.lower())
    if word is not None:
        return word
    if "_" in text or not text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def whole(value: Any) -> int | None:
    """A step counter as int: 12, 12.0 and "12"; None for anything that is not a whole number within 64 bits."""
    as_float = number(value)
    if as_float is None or not math.isfinite(as_float) or as_float != int(as_float) or abs(as_float) >= INT64_LIMIT:
        return None
    return int(value) if isinstance(value, int) else int(as_float)


def flatten(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of a nested row, keys joined by `/`. Lists are no scalars and are left out, but one of length one."""
    for key, value in row.items():
        name = f"{prefix}/{key}" if prefix else str(key)
        if isinstance(value, Mapping):
            yield from flatten(value, name)
        elif isinstance(value, list):
            if len(value) == 1:
                yield name, value[0]
        else:
            yield name, value


def step_of(row: Mapping[str, Any]) -> int | None:
    """The row's step under any usual name."""
    for key in STEP_KEYS:
        if key in row:
            step = whole(row[key])
            if step is not None:
                return step
    return None


def time_of(row: Mapping[str, Any]) -> float | None:
    """Seconds since the epoch where the row gives them as a number of that size."""
    for key in TIME_KEYS:
        value = row.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > EARLIEST_TIME:
            return value / 1000 if value > FIRST_MILLISECONDS else float(value)
    return None


def widened(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row of one value under its metric's name, `val/loss` where a split is named; any other row as it is."""
    value_key = next((key for key in LONG_VALUES if key in row), None)
    name_key = next((key for key in LONG_NAMES if isinstance(row.get(key), str)), None)
    if value_key is None or name_key is None:
        return row
    counters = {key: leaf for key, leaf in row.items() if key.lower() in _NO_VALUES}
    if any(number(leaf) is not None for key, leaf in row.items() if key != value_key and key not in counters):
        return row
    parts = [row[key] for key in _PARTS if key != name_key and isinstance(row.get(key), str)]
    return {**counters, "/".join((*parts, row[name_key])): row[value_key]}


def add_row(columns: dict[str, Column], row: Mapping[str, Any], step: int | None, line: int | None) -> int:
    """Add one row's metrics to the columns; returns how many numbers it held."""
    row = widened(row)
    time = time_of(row)
    held = 0
    for name, leaf in flatten(row):
        if name.lower() in NOT_METRICS:
            continue
        value = number(leaf)
        if value is None and leaf is not None:
            continue
        column = columns.get(name)
        if column is None:
            column = columns[name] = Column()
        column.add(step, value, time, line)
        held += value is not None
    return held


def series_of(columns: Mapping[str, Column]) -> dict[str, pl.DataFrame]:
    """The series of a reading; as `settled`."""
    return settled(points_of(columns))


def settled(points: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The series of a reading, of all points of each metric, without the metrics of which none is left.

    A logged null becomes NaN where that is what it stands for, else it is left out.
    """
    series = {name: without_nulls(of_one) for name, of_one in points.items()}
    return {name: kept for name, kept in series.items() if kept.height}


def points_of(columns: Mapping[str, Column]) -> dict[str, pl.DataFrame]:
    """All points of each metric; a value is null where null was logged."""
    frames: dict[str, pl.DataFrame] = {}
    for name, column in columns.items():
        shown = name.encode("utf-8", "backslashreplace").decode()  # a lone surrogate is no text
        frame = _frame(column)
        frames[shown] = pl.concat([frames[shown], frame]) if shown in frames else frame
    return frames


def _frame(column: Column) -> pl.DataFrame:
    return pl.DataFrame(
        [
            pl.Series("step", [None if step is None else whole(step) for step in column.steps], dtype=pl.Int64),
            pl.Series("value", column.values, dtype=pl.Float64),
            pl.Series("time", column.times, dtype=pl.Float64),
            pl.Series("line", column.lines, dtype=pl.Int64),
        ]
    )


# A metric measured every second or third row is null half or two thirds of the time; NaN among numbers is rarer.
_FEW_NULLS = 3


def without_nulls(points: pl.DataFrame) -> pl.DataFrame:
    """The points of a metric with each logged null turned into NaN or left out.

    Writers of strict JSON (orjson, JavaScript) print NaN as null; others print null for "not measured on this row".
    Nulls that end the log (two at least: a last summary row is none), or that are few among the numbers, stand for NaN;
    a metric that is null every other row was simply not measured then.
    """
    value = points["value"]
    nulls = value.null_count()
    if not nulls:
        return points
    numbers = points.height - nulls
    only_last = value[numbers:].null_count() == nulls
    if numbers and (nulls > 1 if only_last else nulls * _FEW_NULLS <= numbers):
        return points.with_columns(value.fill_null(math.nan))
    return points.filter(value.is_not_null())
