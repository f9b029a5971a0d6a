"""The cells of a line, and the numbers in them."""

from __future__ import annotations

import csv
import re

from gradtrend.ingest.reading.numbers import parse_number

SEPARATORS = (",", "\t", ";")
EMPTY = frozenset({"", "NA", "N/A", "-", "None", "null", "<NA>"})  # not logged on this row; Keras writes NA
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+),\d+(?:[eE][+-]?\d+)?")


def split(line: str, separator: str) -> list[str]:
    """The cells of a line, without the spaces around them; quoted ones may hold the separator. "" splits at spaces."""
    if not separator:
        return line.split()
    try:
        cells = next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # a carriage return within the line, a field without end
        cells = line.split(separator)
    return [cell.strip() for cell in cells]


def cell_number(cell: str, separator: str) -> float | None:
    """The number in a cell; with a decimal comma, where no comma separates the cells."""
    if separator != "," and "," in cell and _DECIMAL_COMMA.fullmatch(cell):
        cell = cell.replace(".", "").replace(",", ".")
    return parse_number(cell)
