"""Logged values -> numbers: every spelling of NaN and inf, and whole numbers of 64 bits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

INT64_LIMIT = 1 << 63  # steps and times are 64-bit integers; text, JSON and SQLite can hold larger ones
# Spellings of a non-finite number in text, as C, C++, Python, Java, JavaScript and Windows print them.
_NONFINITE_WORDS = {
    "nan": math.nan, "-nan": math.nan, "+nan": math.nan, "nan(ind)": math.nan, "-nan(ind)": math.nan,
    "1.#ind": math.nan, "-1.#ind": math.nan, "1.#qnan": math.nan, "1.#inf": math.inf, "-1.#inf": -math.inf,
    "inf": math.inf, "+inf": math.inf, "-inf": -math.inf,
    "infinity": math.inf, "+infinity": math.inf, "-infinity": -math.inf,
}  # fmt: skip
_FAR_ABOVE = 10  # a number that lost its exponent is at least a thousand times too large: e-05 is rarely e-02
_ENOUGH_TO_COMPARE = 3  # whole numbers: a counter that goes down has fewer digits at some point
_WRITTEN = re.compile(r"[+-]?\d+(?P<decimals>[.,]\d*)?(?P<exponent>[eE][+-]?\d+)?")


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
    try:
        return float(text) if "_" not in text else None
    except ValueError:  # rare in a log, so that it is looked at when it occurs
        return _NONFINITE_WORDS.get(text.strip().lower())


def whole(value: Any) -> int | None:
    """A step counter as int: 12, 12.0 and "12"; None for anything that is not a whole number within 64 bits."""
    as_float = number(value)
    if as_float is None or not math.isfinite(as_float) or as_float != int(as_float) or abs(as_float) >= INT64_LIMIT:
        return None
    return int(value) if isinstance(value, int) else int(as_float)


def could_be_cut(cell: str, others: Iterable[str]) -> bool:
    """Whether the last number of a log without a newline at its end may be the beginning of a longer one; `others` are
    the numbers before it.

    It is one when it is written unlike them all: as no number (1.5e-, or nothing), with fewer decimals (12 of 123474.7)
    or, of numbers without any, fewer digits, with a shorter exponent (1e-0 of 1e-05), or without the exponent that
    others have and far above them (3.5 of 3.5e-05). What is cut later on is wrong by less than its last digit.
    """
    others = list(others)
    own = _WRITTEN.fullmatch(cell)
    written = [match for other in others if (match := _WRITTEN.fullmatch(other)) is not None]
    if own is None or not written:  # `1.5e-`, `na`: no number that could be believed
        return len(written) == len(others) > 0 and parse_number(cell) is None
    exponents = [len(match["exponent"]) for match in written if match["exponent"]]
    if exponents and own["exponent"]:
        return len(own["exponent"]) < min(exponents)
    if exponents and _size(own) > _FAR_ABOVE * max(map(_size, written)):
        return True
    decimals, fewest = len(own["decimals"] or ""), min(len(match["decimals"] or "") for match in written)
    if decimals == fewest == 0 and len(written) >= _ENOUGH_TO_COMPARE:
        return len(own[0]) < min(len(match[0]) for match in written)
    return decimals < fewest


def _size(written: re.Match[str]) -> float:
    return abs(float(written[0].replace(",", ".")))
