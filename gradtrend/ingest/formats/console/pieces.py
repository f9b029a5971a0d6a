"""Lines of which a piece is missing: what a crash cut off at the end, and what other output tore apart.

A line is a piece only where whole ones look like it. Summaries, tables and headers between the rows are whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gradtrend.ingest.formats.console.lines.line import ConsoleLine, LineReader
from gradtrend.ingest.formats.console.rows import ConsoleRows
from gradtrend.ingest.reading.counters import UNKNOWN
from gradtrend.model.runlog import Skipped

_MOST = 1000  # lines without a step that are remembered; the report lists the first hundred


@dataclass(slots=True)
class Pieces:
    """The lines that may be pieces, while a log is read."""

    stepless: dict[int, str] = field(default_factory=dict)
    last: tuple[int, ConsoleLine] | None = None  # where the log ends within it

    def watch(self, number: int, logged: ConsoleLine, ends_within: bool) -> None:
        """Look at the line of that number; `ends_within` says that no line end follows it."""
        self.last = (number, logged) if ends_within else None
        if logged.counter == UNKNOWN and logged.epoch == UNKNOWN and len(self.stepless) < _MOST:
            self.stepless[number] = logged.text

    def cut(self, rows: ConsoleRows, reader: LineReader) -> Iterator[Skipped]:
        """Forget the number at the end of the log, where the line should go on and no line end follows."""
        if self.last is None:
            return
        number, logged = self.last
        fields = logged.plan.fields
        ends_in_a_number = bool(fields) and fields[-1].end == len(logged.text)
        if ends_in_a_number and rows.line and rows.line[-1] == number and reader.is_cut(logged.text):
            rows.drop_last_value()
            yield Skipped("cut inside its last number", line=number)

    def fragments(self, lost: Iterable[int], reader: LineReader) -> Iterator[Skipped]:
        """Those of the lines without a step that have lost it with their head."""
        for number in lost:
            if number in self.stepless and reader.is_fragment(self.stepless[number]):
                yield Skipped("the head of this line, with its step, is missing", line=number)
