"""The points of metrics while a log is read -> tables, with what a logged null stands for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from gradtrend.ingest.limits import MOST_METRICS
from gradtrend.ingest.reading.names import normalise
from gradtrend.ingest.reading.numbers import whole
from gradtrend.ingest.reading.patterns import HELD_OUT
from gradtrend.model.runlog import Skipped


@dataclass(slots=True)
class Column:
    """The points of one metric while a log is read, in the order logged."""

    steps: list[int | None] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)
    times: list[float | None] = field(default_factory=list)
    lines: list[int | None] = field(default_factory=list)

    def add(self, step: int | None, value: float | None, time: float | None, line: int | None) -> None:
        """Append one point; a value of None is a logged null."""
        self.steps.append(step)
        self.values.append(value)
        self.times.append(time)
        self.lines.append(line)


class Columns(dict[str, Column]):
    """The columns of one log by the names of their metrics. Of names beyond `MOST_METRICS` nothing is kept: a log may
    have another name on every row.
    """

    def __init__(self) -> None:
        super().__init__()
        self._left_out = 0

    def of(self, name: str) -> Column:
        """The column of a metric, to add a point to."""
        column = self.get(name)
        if column is None:
            column = Column()
            if len(self) < MOST_METRICS:
                self[name] = column
            else:
                self._left_out += 1
        return column

    def skipped(self) -> tuple[Skipped, ...]:
        """What was left out."""
        return names_left_out(self._left_out)


def names_left_out(values: int) -> tuple[Skipped, ...]:
    """The note for so many values of metrics beyond `MOST_METRICS`."""
    return (Skipped(f"values of metrics beyond the first {MOST_METRICS:,}: {values:,}"),) if values else ()


def series_of(columns: Mapping[str, Column]) -> dict[str, pl.DataFrame]:
    """The series of a reading; as `settled`."""
    return settled(points_of(columns))


def settled(points: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The series of a reading, of all points of each metric, without the metrics of which none is left.

    A logged null becomes NaN where that is what it stands for, else it is left out.
    """
    if any(of_one["value"].null_count() for of_one in points.values()):
        points = _without_evaluations(_without_empty_start(points))
    series = {name: _without_nulls(of_one) for name, of_one in points.items()}
    return {name: kept for name, kept in series.items() if kept.height}


def _without_empty_start(points: Mapping[str, pl.DataFrame]) -> Mapping[str, pl.DataFrame]:
    """The points without the nulls before the first number, where several metrics begin so on the same lines: that is a
    row of another kind (an evaluation before the first step), not NaN in all of them.
    """
    starts = {name: start for name, of_one in points.items() if (start := _empty_start(of_one))}
    counts = Counter(starts.values())
    alike = {name: len(start) for name, start in starts.items() if counts[start] > 1}
    return {name: of_one[alike.get(name, 0) :] for name, of_one in points.items()}


def _without_evaluations(points: Mapping[str, pl.DataFrame]) -> Mapping[str, pl.DataFrame]:
    """The points without the nulls on the rows of an evaluation: those with a number of a held-out metric, where the
    metric itself has most of its numbers on other rows (so not where each row has both).
    """
    held_out = [of_one for name, of_one in points.items() if _is_held_out(name)]
    numbers = [of_one.filter(of_one["value"].is_not_null())["line"] for of_one in held_out]
    lines = pl.concat(numbers).drop_nulls().unique() if numbers else pl.Series(dtype=pl.Int64)
    if not len(lines):
        return points
    return {name: of_one if _is_held_out(name) else _measured(of_one, lines) for name, of_one in points.items()}


def _is_held_out(name: str) -> bool:
    return HELD_OUT.search(normalise(name)) is not None


def _measured(points: pl.DataFrame, evaluations: pl.Series) -> pl.DataFrame:
    missing = points["value"].is_null()
    if not missing.any():
        return points
    evaluated = points["line"].is_in(evaluations.implode()).fill_null(False)
    numbers = int((~missing).sum())
    return points.filter(~(missing & evaluated)) if int((~missing & ~evaluated).sum()) * 2 > numbers else points


def _empty_start(points: pl.DataFrame) -> tuple[int, ...]:
    """The lines of the nulls before the first number of a metric; none where it has no number or its rows no line."""
    value = points["value"]
    first = value.is_not_null().arg_max()
    if first is None or not first or value[first] is None:
        return ()
    lines = points["line"][:first]
    return () if lines.null_count() else tuple(lines.to_list())


def points_of(columns: Mapping[str, Column]) -> dict[str, pl.DataFrame]:
    """All points of each metric; a value is null where null was logged."""
    frames: dict[str, pl.DataFrame] = {}
    for name, column in columns.items():
        shown = as_text(name)
        frame = _frame(column)
        frames[shown] = pl.concat([frames[shown], frame]) if shown in frames else frame
    return frames


def as_text(name: str) -> str:
    """The name of a metric with lone surrogates written out: those of JSON, and the bytes of a file's name that are no
    UTF-8. polars takes text alone.
    """
    return name.encode("utf-8", "backslashreplace").decode()


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


def _without_nulls(points: pl.DataFrame) -> pl.DataFrame:
    """The points of a metric with each logged null turned into NaN or left out.

    Writers of strict JSON (orjson, JavaScript) print NaN as null; others print null for "not measured on this row".
    Nulls that are few among the numbers stand for NaN, and so do those that end the log (two at least: a last summary
    row is none); a metric that is null every other row was simply not measured then, unless it ends in more than twice
    as many nulls as ever lay between two numbers.
    """
    value = points["value"]
    if not value.null_count():
        return points
    numbers = value.is_not_null().arg_true()
    if not len(numbers):
        return points.clear()
    last = int(numbers[-1])
    ending, earlier = points.height - 1 - last, last + 1 - len(numbers)
    few = earlier * _FEW_NULLS <= len(numbers)
    lost = ending >= (1 if few and earlier else 2) and (few or ending > 2 * longest_gap(numbers))
    kept = points[: last + 1]
    kept = kept.with_columns(pl.col("value").fill_null(math.nan)) if few else kept.filter(kept["value"].is_not_null())
    ended = points[last + 1 :] if lost else points.clear()
    return pl.concat([kept, ended.with_columns(pl.col("value").fill_null(math.nan))])


def nulls_told_apart(values: pl.Series) -> pl.Series:
    """The values of a metric, row by row, with NaN for the nulls that stand for it; null where nothing was measured."""
    rows = pl.DataFrame({"value": values, "row": range(len(values))}, schema={"value": pl.Float64, "row": pl.Int64})
    kept = _without_nulls(rows)
    told = [None] * len(values)
    for row, value in zip(kept["row"], kept["value"], strict=True):
        told[row] = value
    return pl.Series(values.name, told, dtype=pl.Float64)


def longest_gap(numbers: pl.Series) -> int:
    """How many rows at most lie between two of these."""
    widest = numbers.diff().max()
    return widest - 1 if isinstance(widest, int) else 0
