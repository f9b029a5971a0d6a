"""What console lines logged, kept in flat arrays while a log of any length is read."""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gradtrend.ingest.formats.console.lines.grammar import value_of
from gradtrend.ingest.formats.console.lines.line import ConsoleLine
from gradtrend.ingest.formats.console.lines.plan import says
from gradtrend.ingest.limits import MOST_CONSOLE_LINES, MOST_CONSOLE_OTHERS, MOST_METRICS
from gradtrend.ingest.reading.columns import names_left_out
from gradtrend.ingest.reading.counters import LARGEST, UNKNOWN
from gradtrend.model.runlog import Skipped
from gradtrend.model.words import Role

_DIGITS_SAMPLE = 2_000


@dataclass(slots=True)
class ConsoleRows:
    """The lines of one log. One entry a line in the line arrays, one entry a value in the value arrays."""

    line: array[int] = field(default_factory=lambda: array("q"))
    epoch: array[int] = field(default_factory=lambda: array("q"))
    counter: array[int] = field(default_factory=lambda: array("q"))
    total: array[int] = field(default_factory=lambda: array("q"))
    rank: array[int] = field(default_factory=lambda: array("i"))
    rounding: array[int] = field(default_factory=lambda: array("i"))
    bar: array[int] = field(default_factory=lambda: array("b"))
    metric: array[int] = field(default_factory=lambda: array("i"))
    value: array[float] = field(default_factory=lambda: array("d"))
    row: array[int] = field(default_factory=lambda: array("i"))
    names: dict[str, int] = field(default_factory=dict)
    digits: list[int] = field(default_factory=list)
    others: int = 0
    nameless: int = 0  # values of metrics beyond those of which values are kept
    seen: int = 0
    stride: int = 1
    in_epoch: bool = False
    zero_based: bool = False
    from_one: bool = False

    def add(self, number: int, logged: ConsoleLine) -> None:
        """Append one line; `number` is its line number."""
        plan, place, text = logged.plan, logged.plan.place, logged.text
        places = (logged.epoch, logged.counter, logged.total)
        row = self._new_row(number, places, logged.rank, logged.rounding, place.bar)
        if row is None:
            return
        self.in_epoch |= place.in_epoch
        self.zero_based |= place.zero_based
        self.from_one |= place.from_one
        for name, role, start, end, unit in plan.fields:
            printed = text[start:end]
            if role is Role.OTHER:
                self.others += 1
                if self.others > MOST_CONSOLE_OTHERS:
                    continue
            elif role is Role.GRAD_NORM:
                self._add_digits(printed)
            self._add_value(name, value_of(printed, unit), row)

    def add_row(self, number: int, epoch: int, counter: int, values: Sequence[tuple[str, str, float]]) -> None:
        """Append a row of a table: (name, text, value) triples."""
        row = self._new_row(number, (epoch, counter, UNKNOWN))
        if row is None:
            return
        for name, text, value in values:
            if says(name) is Role.GRAD_NORM:
                self._add_digits(text)
            self._add_value(name, value, row)

    def _new_row(
        self, number: int, places: tuple[int, int, int], rank: int = UNKNOWN, rounding: int = 1, bar: bool = False
    ) -> int | None:
        """The index of a new row, or None for one that thinning leaves out; `places` are epoch, counter and total."""
        self.seen += 1
        if self.seen % self.stride:
            return None
        if len(self.line) >= MOST_CONSOLE_LINES:
            self._halve()
        self.line.append(number)
        epoch, counter, total = places
        self.epoch.append(epoch if abs(epoch) < LARGEST else UNKNOWN)
        self.counter.append(counter if abs(counter) < LARGEST else UNKNOWN)
        self.total.append(total if abs(total) < LARGEST else UNKNOWN)
        self.rank.append(rank)
        self.rounding.append(rounding)
        self.bar.append(bar)
        return len(self.line) - 1

    def _halve(self) -> None:
        """Keep every second line, and from now on read twice as few: memory stays bounded however long the log."""
        self.line, self.epoch, self.counter, self.total = (
            array("q", np.frombuffer(column, dtype=np.int64)[::2].tobytes())
            for column in (self.line, self.epoch, self.counter, self.total)
        )
        self.rank, self.rounding = (
            array("i", np.frombuffer(column, dtype=np.intc)[::2].tobytes()) for column in (self.rank, self.rounding)
        )
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
            if len(self.names) >= MOST_METRICS:
                self.nameless += 1
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

    def place(self, steps: Mapping[int, int]) -> None:
        """Give the lines of these numbers their steps."""
        for row, number in enumerate(self.line):
            if number in steps:
                self.counter[row] = steps[number]

    def left_out(self) -> tuple[Skipped, ...]:
        """What was not kept: values of too many names, and too many values that are neither norm nor loss."""
        others = max(0, self.others - MOST_CONSOLE_OTHERS)
        more = f"values beside norms and losses beyond the first {MOST_CONSOLE_OTHERS:,}: {others:,}"
        return (*names_left_out(self.nameless), *([Skipped(more)] if others else []))

    def drop_last_value(self) -> None:
        """Forget the value that was added last."""
        for column in (self.metric, self.value, self.row):
            column.pop()

    def kept_digits(self) -> int:
        """Significant digits that the log prints of its gradient norms (the median); 17 where it prints none."""
        return int(np.median(self.digits)) if self.digits else 17


def significant_digits(text: str) -> int:
    """How many digits of a printed number carry information: 4 for `0.0006012`, at least 1."""
    mantissa = text.lower().split("e")[0].replace(",", "").lstrip("+-")
    return max(1, len(mantissa.replace(".", "").lstrip("0")))
