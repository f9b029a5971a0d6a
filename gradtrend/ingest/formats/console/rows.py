"""What console lines logged, kept in flat arrays while a log of any length is read, and the table made of it."""

from __future__ import annotations

import bisect
import itertools
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from gradtrend.ingest.formats.console.grammar import value_of
from gradtrend.ingest.formats.console.line import ConsoleLine
from gradtrend.ingest.formats.console.plan import says
from gradtrend.ingest.reading.counters import UNKNOWN, Ints, whole_run_steps
from gradtrend.ingest.reading.numbers import INT64_LIMIT
from gradtrend.model.runlog import Note
from gradtrend.model.words import Role

# Names beside the known roles are kept for `--metric`, but a huge log must not fill the memory with its timings.
_MOST_OTHERS = 4_000_000
_MOST_NAMES = 5_000
_MOST_LINES = 2_000_000  # of values; with four a line that is half a gigabyte, and more than any verdict needs
_DIGITS_SAMPLE = 2_000
_FEW = 2  # lines that may well be of one step
_UNPLACED = 0.5  # above this share of lines without a step, the few that have one are read as rows, too


@dataclass(slots=True)
class ConsoleRows:
    """The lines of one log. One entry a line in the line arrays, one entry a value in the value arrays."""

    line: array[int] = field(default_factory=lambda: array("q"))
    epoch: array[int] = field(default_factory=lambda: array("q"))
    counter: array[int] = field(default_factory=lambda: array("q"))
    total: array[int] = field(default_factory=lambda: array("q"))
    rank: array[int] = field(default_factory=lambda: array("i"))
    bar: array[int] = field(default_factory=lambda: array("b"))
    metric: array[int] = field(default_factory=lambda: array("i"))
    value: array[float] = field(default_factory=lambda: array("d"))
    row: array[int] = field(default_factory=lambda: array("i"))
    names: dict[str, int] = field(default_factory=dict)
    digits: list[int] = field(default_factory=list)
    others: int = 0
    seen: int = 0
    stride: int = 1
    in_epoch: bool = False
    zero_based: bool = False
    from_one: bool = False

    def add(self, number: int, logged: ConsoleLine) -> None:
        """Append one line; `number` is its line number."""
        plan, text = logged.plan, logged.text
        row = self._new_row(number, logged.epoch, logged.counter, logged.total, logged.rank, plan.bar)
        if row is None:
            return
        self.in_epoch |= plan.in_epoch
        self.zero_based |= plan.zero_based
        self.from_one |= plan.from_one
        for name, role, start, end, unit in plan.fields:
            printed = text[start:end]
            if role is Role.OTHER:
                self.others += 1
                if self.others > _MOST_OTHERS:
                    continue
            elif role is Role.GRAD_NORM:
                self._add_digits(printed)
            self._add_value(name, value_of(printed, unit), row)

    def add_row(self, number: int, epoch: int, counter: int, values: Sequence[tuple[str, str, float]]) -> None:
        """Append a row of a table: (name, text, value) triples."""
        row = self._new_row(number, epoch, counter, UNKNOWN, UNKNOWN, False)
        if row is None:
            return
        for name, text, value in values:
            if says(name) is Role.GRAD_NORM:
                self._add_digits(text)
            self._add_value(name, value, row)

    def _new_row(self, number: int, epoch: int, counter: int, total: int, rank: int, bar: bool) -> int | None:
        """The index of a new row, or None for one that thinning leaves out."""
        self.seen += 1
        if self.seen % self.stride:
            return None
        if len(self.line) >= _MOST_LINES:
            self._halve()
        self.line.append(number)
        for counts, count in ((self.epoch, epoch), (self.counter, counter), (self.total, total)):
            counts.append(count if abs(count) < INT64_LIMIT else UNKNOWN)
        self.rank.append(rank)
        self.bar.append(bar)
        return len(self.line) - 1

    def _halve(self) -> None:
        """Keep every second line, and from now on read twice as few: memory stays bounded however long the log."""
        self.line, self.epoch, self.counter, self.total = (
            array("q", np.frombuffer(column, dtype=np.int64)[::2].tobytes())
            for column in (self.line, self.epoch, self.counter, self.total)
        )
        self.rank = array("i", np.frombuffer(self.rank, dtype=np.intc)[::2].tobytes())
        self.bar = array("b", np.frombuffer(self.bar, dtype=np.int8)[::2].tobytes())
        row = np.frombuffer(self.row, dtype=np.intc)
        kept = row % 2 == 0
        self.metric = array("i", np.frombuffer(self.metric, dtype=np.intc)[kept].tobytes())
        self.value = array("d", np.frombuffer(self.value)[kept].tobytes())
        self.row = array("i", (row[kept] // 2).tobytes())
        self.stride *= 2

    def _add_digits(self, printed: str) -> None:
        if len(self.digits) < _DIGITS_SAMPLE and printed[-1:].isdigit():
            self.digits.append(significant_digits(printed))

    def _add_value(self, name: str, value: float | None, row: int) -> None:
        code = self.names.get(name)
        if code is None:
            if len(self.names) >= _MOST_NAMES:
                return
            code = self.names[name] = len(self.names)
        self.metric.append(code)
        self.value.append(np.nan if value is None else value)
        self.row.append(row)

    def add_missing(self, name: str, number: int) -> None:
        """A NaN for a metric that the line of that number left out because it was NaN."""
        row = bisect.bisect_left(self.line, number)
        if row < len(self.line) and self.line[row] == number:
            self._add_value(name, float("nan"), row)

    def kept_digits(self) -> int:
        """Significant digits that the log prints of its gradient norms (the median); 17 where it prints none."""
        return int(np.median(self.digits)) if self.digits else 17


def significant_digits(text: str) -> int:
    """How many digits of a printed number carry information: 4 for `0.0006012`, at least 1."""
    mantissa = text.lower().split("e")[0].replace(",", "").lstrip("+-")
    return max(1, len(mantissa.replace(".", "").lstrip("0")))


def series_of_rows(rows: ConsoleRows) -> tuple[dict[str, pl.DataFrame], tuple[Note, ...], int]:
    """The reading's series, notes on what was left out, and how many lines had no step where others do."""
    if not rows.value:
        return {}, (), 0
    row = np.frombuffer(rows.row, dtype=np.intc)
    steps, unplaced = _steps(rows)
    keep, notes = _one_rank(rows, row)
    lost = 0
    if unplaced.mean() > _UNPLACED:
        steps = np.full_like(steps, UNKNOWN)
    else:
        lost = int(unplaced.sum())
        keep &= ~unplaced[row]
    metric = np.frombuffer(rows.metric, dtype=np.intc)
    order = np.lexsort((row, metric))
    order = order[keep[order]]
    order = order[_settled(metric[order], steps[row[order]], np.frombuffer(rows.bar, dtype=np.int8)[row[order]])]
    points = pl.DataFrame(
        {
            "step": pl.Series(steps[row[order]]),
            "value": pl.Series(np.frombuffer(rows.value)[order]),
            "time": pl.Series([None], dtype=pl.Float64).new_from_index(0, len(order)),
            "line": pl.Series(np.frombuffer(rows.line, dtype=np.int64)[row[order]]),
        }
    ).with_columns(pl.when(pl.col("step") != UNKNOWN).then(pl.col("step")).alias("step"))
    names = list(rows.names)
    edges = [0, *(np.flatnonzero(np.diff(metric[order])) + 1).tolist(), len(order)]
    series = {
        names[metric[order[start]]]: points.slice(start, stop - start)
        for start, stop in itertools.pairwise(edges)
        if stop > start
    }
    return series, (*notes, *_thinned(rows)), lost


def _thinned(rows: ConsoleRows) -> tuple[Note, ...]:
    if rows.stride == 1:
        return ()
    message = f"the log has {rows.seen:,} lines of values; one in {rows.stride} was read"
    return (Note("thinned", message, measures=(("stride", float(rows.stride)),)),)


def _steps(rows: ConsoleRows) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Each line's step (UNKNOWN for none), and which lines have none."""
    epoch = np.frombuffer(rows.epoch, dtype=np.int64)
    counter = np.frombuffer(rows.counter, dtype=np.int64)
    total = np.frombuffer(rows.total, dtype=np.int64)
    if len(counter) > _FEW and (counter == counter[0]).all() and (epoch == UNKNOWN).all() and (total == UNKNOWN).all():
        counter = np.full_like(counter, UNKNOWN)  # a process id or a line number in the place of a step
    steps = whole_run_steps(epoch, counter, total, rows.in_epoch, rows.zero_based, any(rows.bar))
    if (steps == UNKNOWN).mean() > _UNPLACED and not rows.in_epoch:
        by_epoch = np.where(counter == UNKNOWN, epoch, counter)
        if (by_epoch == UNKNOWN).mean() <= _UNPLACED and (counter == UNKNOWN).mean() > _UNPLACED:
            steps = np.where(counter == UNKNOWN, epoch, UNKNOWN)
    if rows.from_one:  # this format alone counts from 1 where the run's other logs count from 0
        steps = np.where(steps > 0, steps - 1, steps)
    return steps, steps == UNKNOWN


def _one_rank(rows: ConsoleRows, row: npt.NDArray[np.intc]) -> tuple[npt.NDArray[np.bool_], tuple[Note, ...]]:
    """Which values to keep so that each line counts once: those of the rank that printed most, the lowest of equals."""
    rank = np.frombuffer(rows.rank, dtype=np.intc)
    ranks, counts = np.unique(rank[rank != UNKNOWN], return_counts=True)
    if len(ranks) < 2:
        return np.ones(len(row), dtype=bool), ()
    chosen = int(ranks[int(counts.argmax())])
    others = "1 other rank" if len(ranks) == 2 else f"{len(ranks) - 1} other ranks"
    message = f"lines of {others} were left out; rank {chosen} was read"
    return (rank[row] == UNKNOWN) | (rank[row] == chosen), (Note("ranks", message),)


def _settled(metric: npt.NDArray[np.intc], step: Ints, bar: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    """Which values are the last that a progress bar showed at their step, and so the step's own."""
    keep = np.ones(len(metric), dtype=bool)
    again = (metric[1:] == metric[:-1]) & (step[1:] == step[:-1]) & (step[1:] != UNKNOWN)
    keep[:-1] = ~(again & (bar[1:] > 0) & (bar[:-1] > 0))
    return keep
