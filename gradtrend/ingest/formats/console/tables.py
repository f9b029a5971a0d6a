"""Tables in console text: a line of column names, then lines of numbers that name nothing.

`| step | loss | grad_norm |` and `Step  Training Loss  Grad Norm`, with or without rulers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gradtrend.ingest.formats.console.lines.line import clean
from gradtrend.ingest.formats.console.lines.plan import says
from gradtrend.ingest.formats.console.rows import ConsoleRows
from gradtrend.ingest.reading.counters import UNKNOWN
from gradtrend.ingest.reading.numbers import parse_number, whole
from gradtrend.ingest.reading.rows import STEP_KEYS
from gradtrend.model.words import Role

_EDGES = "|│┃║ \t"
_BARRED = re.compile(r"[|│┃║]")
_GAP = re.compile(r"\t+|\s{2,}")
_WORDS_OF_CELL = re.compile(r"\S+(?: \S+)*")
_COMMA = re.compile(r"[,;]")
_BAR = re.compile(r"(?<!\d)\d{1,9}%\|")  # a progress bar behind the row
_RULER = re.compile(r"^[\s|│┃║+:=\-–─━┼╇╋┏┓┗┛┡┩├┤└┘┌┐┬┴╞╪╡]*$")
# `epoch train loss valid loss accuracy`: the names of old fastai, of two words each.
_SPLIT_LOSS = re.compile(r"\b(train|training|valid|validation|val|test) loss\b", re.IGNORECASE)
_MOST_COLUMNS = 60
_GIVE_UP = 3  # lines in a row that are no table rows


@dataclass(slots=True)
class TableReader:
    """Reads tables; `is_open` while lines may belong to one."""

    columns: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # where each column begins in the header, for rows with gaps
    separator: re.Pattern[str] = _GAP
    strangers: int = 0

    @property
    def is_open(self) -> bool:
        """Whether the next line may be a row of a table."""
        return bool(self.columns)

    def take(self, number: int, raw: bytes, rows: ConsoleRows) -> bool:
        """Adds a line that is a row of the open table to `rows`; whether it was one, or a ruler."""
        text = clean(raw)
        if not text or _RULER.match(text):
            return True
        bar = _BAR.search(text)
        row = text if bar is None else text[: bar.start()].rstrip().removesuffix(":")
        cells = _cells(row, self.separator)
        if 1 < len(cells) < len(self.columns) and self.separator is _GAP:
            cells = self._by_place(row) or cells
        values = [parse_number(cell.replace(",", "").rstrip("%:")) for cell in cells]
        numbers = sum(value is not None for value in values)
        if len(cells) == len(self.columns) and numbers * 2 >= len(cells) and self._has_step(cells):
            self.strangers = 0
            self._add(number, cells, values, rows)
            return True
        self.strangers += 1
        if self.strangers >= _GIVE_UP:
            self.columns, self.strangers = [], 0
        return False

    def _by_place(self, row: str) -> list[str]:
        """The cells of a row with gaps, each under the name that begins where it does; nothing where one does not."""
        cells = [""] * len(self.columns)
        for match in _WORDS_OF_CELL.finditer(row):
            if match.start() not in self.places or len(self.places) != len(cells):
                return []
            cells[self.places.index(match.start())] = match.group()
        return cells

    def _has_step(self, cells: list[str]) -> bool:
        """Whether a number stands under the step, or the epoch (`all` does in the row of a validation)."""
        places = zip(self.columns, cells, strict=True)
        return any(_whole(cell) != UNKNOWN for name, cell in places if name.lower().replace(" ", "_") in _STEPS)

    def open_at(self, raw: bytes) -> None:
        """Open a table if the line names columns: a step, and a loss or a gradient norm."""
        if (any(48 <= byte <= 57 for byte in raw) and b"=" in raw) or len(raw) > 4096:
            return
        text = clean(raw).lstrip("# ")  # numpy's savetxt marks its header
        separator = next((kind for kind in (_BARRED, _COMMA) if kind.search(text.strip(_EDGES))), _GAP)
        names = [name.rstrip(":") for name in _cells(text, separator)]
        if not 2 <= len(names) <= _MOST_COLUMNS or any(parse_number(n) is not None or ":" in n for n in names):
            return
        if not any(name.lower().replace(" ", "_") in _STEPS for name in names):
            return
        if any(says(name) in (Role.GRAD_NORM, Role.LOSS) for name in names):
            self.columns, self.separator, self.strangers = names, separator, 0
            self.places = [match.start() for match in _WORDS_OF_CELL.finditer(text)]

    def _add(self, number: int, cells: list[str], values: list[float | None], rows: ConsoleRows) -> None:
        counter = epoch = UNKNOWN
        row: list[tuple[str, str, float]] = []
        for name, cell, value in zip(self.columns, cells, values, strict=True):
            key = name.lower().replace(" ", "_")
            if key in {"epoch", "ep"}:
                epoch = _whole(cell)
            elif key in _STEPS:
                counter = _whole(cell) if counter == UNKNOWN else counter
            elif value is not None:
                row.append((name, cell, value))
        rows.add_row(number, epoch, counter, row)


_STEPS = frozenset({*STEP_KEYS, "#", "epoch", "ep", "iterations", "updates", "train_step", "iter.", "training_step"})


def _whole(cell: str) -> int:
    step = whole(cell.replace(",", "").rstrip(":").split("/")[0])
    return UNKNOWN if step is None else step


def _cells(text: str, separator: re.Pattern[str]) -> list[str]:
    cells = [cell.strip() for cell in separator.split(text.strip(_EDGES))]
    if len(cells) > 1 or separator is not _GAP:
        return cells
    return _SPLIT_LOSS.sub(r"\1_loss", text).split()
