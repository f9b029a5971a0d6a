"""The cells of a line, and the numbers in them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from gradtrend.ingest.reading.numbers import parse_number

SEPARATORS = (",", "\t", ";")
EMPTY = frozenset({"", "NA", "N/A", "-", "None", "null", "<NA>"})  # not logged on this row; Keras writes NA
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+),\d+(?:[eE][+-]?\d+)?")
_WRITTEN = re.compile(r"[+-]?\d+(?P<decimals>[.,]\d*)?(?P<exponent>[eE][+-]?\d+)?")


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


def could_be_cut(cell: str, others: Iterator[str] | Sequence[str]) -> bool:
    """Whether the last cell of a file without a newline at its end may be the beginning of a longer number.

    It is one when it is written unlike all others of its column: with fewer decimals than any of them, or without the
    exponent, or the second digit of it, that others have. Of 123474.7 then 12 is left, of 3.5e-05 3.5; what is cut
    later on is wrong by less than its last digit.
    """
    own = _WRITTEN.fullmatch(cell)
    if own is None:  # `1.5e-`, `na`: no number that could be believed
        return False
    written = [match for other in others if (match := _WRITTEN.fullmatch(other)) is not None]
    if not written:
        return False
    exponents = [len(match["exponent"] or "") for match in written]
    if len(own["exponent"] or "") < min((length for length in exponents if length), default=0):
        return True
    return len(own["decimals"] or "") < min(len(match["decimals"] or "") for match in written)
