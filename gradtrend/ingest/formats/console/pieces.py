"""Lines of which a piece is missing: what a crash cut off at the end, and what other output tore apart.

A line is a piece only where whole ones look like it. Summaries, tables and headers between the rows are whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gradtrend.ingest.formats.console.lines.line import ConsoleLine, LineReader, clean, is_fragment
from gradtrend.ingest.formats.console.rows import ConsoleRows
from gradtrend.ingest.formats.console.scan import LineScanner
from gradtrend.ingest.reading.counters import UNKNOWN
from gradtrend.ingest.reading.numbers import could_be_cut
from gradtrend.model.runlog import Skipped

_NUMBERS, _SPACES = re.compile(r"\d+"), re.compile(r"[\s█▉▊▋▌▍▎▏#]+")  # what differs between lines of a kind
_BEGUN = re.compile(rb"\x1b[][0-9;?]{0,40}$")  # the first bytes of a colour
_LAST_NUMBER = re.compile(r"(?<![-+\d.eE])[-+\d.eE]{1,40}$")
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

    def cut(self, rows: ConsoleRows, reader: LineReader, scanner: LineScanner) -> Iterator[Skipped]:
        """Tell of a line at the end of the log that should go on and that no line end follows. Its last number, if it
        ends in one, is forgotten.
        """
        *before, end = re.split(rb"[\r\n]+", scanner.end)
        text, number = _shown(end), scanner.last_line
        is_row = bool(rows.line) and rows.line[-1] == number
        others = [other for line in before if (other := _shown(line))]
        alike = [other for other in others if _form(other) == _form(text)]
        if self._is_cut(is_row, reader) or (alike and _ends_in_a_cut_number(text, alike)):
            if is_row:
                rows.drop_last_value()
            yield Skipped("cut inside its last number", line=number)
        elif text and not alike and any(_form(other).startswith(_form(text)) for other in others):
            yield Skipped("truncated", line=number)

    def _is_cut(self, is_row: bool, reader: LineReader) -> bool:
        """Whether the last row ends in a number, and others like it do not end there."""
        if self.last is None or not is_row:
            return False
        text, fields = self.last[1].text, self.last[1].plan.fields
        return bool(fields) and fields[-1].end == len(text) and reader.is_cut(text)

    def fragments(self, lost: Iterable[int], reader: LineReader) -> Iterator[Skipped]:
        """Those of the lines without a step that have lost it with their head."""
        pieces = [number for number in lost if number in self.stepless]
        whole = reader.placed() if pieces else ()
        for number in pieces:
            if is_fragment(self.stepless[number], whole):
                yield Skipped("the head of this line, with its step, is missing", line=number)


def _shown(line: bytes) -> str:
    return clean(_BEGUN.sub(b"", line)).rstrip("\ufffd")  # the first bytes of a letter


def _form(text: str) -> str:
    """A line without what differs between lines of a kind: digits, spaces and the bars of progress."""
    return _NUMBERS.sub("0", _SPACES.sub(" ", text)).rstrip()


def _ends_in_a_cut_number(text: str, alike: Iterable[str]) -> bool:
    """Whether a line ends in a number that lacks what those of other lines have."""
    own = _LAST_NUMBER.search(text)
    others = (_LAST_NUMBER.search(other) for other in alike)
    return own is not None and could_be_cut(own[0], [other[0] for other in others if other is not None])
