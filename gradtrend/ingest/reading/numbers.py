"""Logged values -> numbers: every spelling of NaN and inf, and whole numbers of 64 bits."""

from __future__ import annotations

import math
from typing import Any

INT64_LIMIT = 1 << 63  # steps and times are 64-bit integers; text, JSON and SQLite can hold larger ones
# Spellings of a non-finite number in text, as C, C++, Python, Java, JavaScript and Windows print them.
_NONFINITE_WORDS = {
    "nan": math.nan, "-nan": math.nan, "+nan": math.nan, "nan(ind)": math.nan, "-nan(ind)": math.nan,
    "1.#ind": math.nan, "-1.#ind": math.nan, "1.#qnan": math.nan, "1.#inf": math.inf, "-1.#inf": -math.inf,
    "inf": math.inf, "+inf": math.inf, "-inf": -math.inf,
    "infinity": math.inf, "+infinity": math.inf, "-infinity": -math.inf,
}  # fmt: skip


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
