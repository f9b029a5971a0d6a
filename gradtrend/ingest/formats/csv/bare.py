"""Numbers in columns without names: the user says what they are called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.formats.csv.cells import EMPTY, SEPARATORS, cell_number, split
from gradtrend.ingest.formats.csv.header import Header, Line, header_with
from gradtrend.ingest.reading.named_columns import NO_NAME
from gradtrend.model.runlog import Skipped

_SAMPLE = 200  # lines by which the separator is told

Row = tuple[int, list[str]]


def named_table(
    lines: Iterator[Line], columns: Sequence[str], path: Path, skipped: list[Skipped]
) -> tuple[Header, Iterator[Row]]:
    """The header that the user's names make, and the rows of so many cells, all of them numbers.

    What separates the cells shows in the first lines. Lines of text between them are no rows; a line of numbers, but of
    fewer or more, is added to `skipped`. Raises InputError where no line fits the names.
    """
    sample = list(islice(lines, _SAMPLE))
    separator = max(("\t", ";", "|", ",", ""), key=lambda one: sum(_fits(line, one, columns) for _, line, _ in sample))
    if not any(_fits(line, separator, columns) for _, line, _ in sample):
        raise InputError(f"{path}: no line has {len(columns)} numbers, as --columns names", _hint(sample))
    header = header_with([("" if name in NO_NAME else name) for name in columns], separator)
    header.index = None  # a column without a name is one that is not wanted
    return header, _rows(chain(sample, lines), header, skipped)


def _fits(line: str, separator: str, columns: Sequence[str]) -> bool:
    cells = split(line, separator)
    return len(cells) == len(columns) and _are_numbers(cells, columns, separator)


def _are_numbers(cells: Sequence[str], names: Sequence[str], separator: str) -> bool:
    """Whether the named cells hold numbers, or nothing, and one at least a number."""
    named = [cell for cell, name in zip(cells, names, strict=True) if name not in NO_NAME]
    numbers = [cell_number(cell, separator) is not None for cell in named]
    return any(numbers) and all(number or cell in EMPTY for number, cell in zip(numbers, named, strict=True))


def _rows(lines: Iterable[Line], header: Header, skipped: list[Skipped]) -> Iterator[Row]:
    for number, line, _ in lines:
        cells = split(line, header.separator)
        if len(cells) == len(header.names):
            if _are_numbers(cells, header.names, header.separator):
                yield number, cells
        elif len(cells) > 1 and all(cell_number(cell, header.separator) is not None for cell in cells):
            skipped.append(Skipped(f"{len(cells)} numbers where --columns has {len(header.names)} names", line=number))


def _hint(lines: Sequence[Line]) -> str:
    for number, line, _ in lines:
        for separator in (*SEPARATORS, "|", ""):
            cells = split(line, separator)
            if len(cells) > 1 and all(cell_number(cell, separator) is not None for cell in cells):
                return f"Line {number} has {len(cells)}; name each column, one that is not wanted with a - ."
    return "A line of numbers looks like: 100 2.31 0.85"
