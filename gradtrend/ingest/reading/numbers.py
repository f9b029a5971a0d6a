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
    text = text.strip()
    word = _NONFINITE_WORDS.get(text.lower())
    if word is not None:
        return word
    if "_" in text or not text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def whole(value: Any) -> int | None:
    """A step counter as int: 12, 12.0 and "12"; None for anything that is not a whole number within 64 bits."""
    as_float = number(value)
    if as_float is None or not math.isfinite(as_float) or as_float != int(as_float) or abs(as_float) >= INT64_LIMIT:
        return None
    return int(value) if isinstance(value, int) else int(as_float)


def could_be_cut(cell: str, others: Iterable[str]) -> bool:
    """Whether the last cell of a log without a newline at its end may be the beginning of a longer number.

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
