"""JSON files that may be cut off: as much of a list of rows as is there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradtrend.errors import InputError
from gradtrend.ingest.files.streams import open_log, read_whole
from gradtrend.ingest.limits import LARGEST_JSON, MOST_JSON_VALUES
from gradtrend.model.runlog import Skipped

_DECODER = json.JSONDecoder()
_BEGIN_VALUES = (b",", b"[", b"{")  # ahead of every value but the first
# Brackets, and the texts in which they are none; one that nothing ends goes on to the end of all.
_NESTS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_MOST_DIGITS = 4000  # Python refuses integers of more than 4,300 digits


def read_text(path: Path) -> str:
    """The whole text of a JSON file. Raises InputError where it is too large to be a log."""
    with open_log(path) as stream:
        data = read_whole(stream, LARGEST_JSON)
    if len(data) > LARGEST_JSON:
        raise InputError(f"{path}: larger than {LARGEST_JSON >> 20} MiB, too large for one JSON document")
    if sum(map(data.count, _BEGIN_VALUES)) > MOST_JSON_VALUES:
        raise InputError(f"{path}: more than {MOST_JSON_VALUES:,} values, too many for one JSON document")
    return data.decode("utf-8", errors="replace")


def parse(text: str) -> Any | None:
    """The document, or None where the text is not whole JSON."""
    try:
        return parse_long(text)
    except (ValueError, RecursionError):
        return None


def parse_long(text: str | bytes) -> Any:
    """The JSON value of a text, also where it has an integer of more digits than Python converts in good time: that is
    a float, and so infinite. Raises ValueError, or RecursionError for a text nested too deep.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # too many digits: the same again, as every other way of reading takes longer
        return json.loads(text, parse_int=_integer)


def _behind(text: str, start: int) -> int:
    """Where the list or mapping that begins at `start` is closed; the text's end where it is not."""
    depth = 0
    for piece in _NESTS.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(piece[0], 0)
        if not depth:
            return piece.end()
    return len(text)


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


def rows_from(text: str, start: int, skipped: list[Skipped]) -> Iterator[Any]:
    """The elements of the list that begins at `start`, up to where the text breaks off; that is added to `skipped`."""
    return values_from(text, start + 1, skipped, end="]")


def values_from(text: str, start: int, skipped: list[Skipped], end: str = "") -> Iterator[Any]:
    """The values one after another from `start` to the character `end` (of the text, by default), as `rows_from`."""
    position = start
    while True:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        if text[position : position + 1] == end:
            return
        try:
            value, position = _DECODER.raw_decode(text, position)
        except ValueError:
            skipped.append(Skipped("the file is cut off or damaged here", line=text.count("\n", 0, position) + 1))
            return
        except RecursionError:
            skipped.append(Skipped("nested too deep to be read", line=text.count("\n", 0, position) + 1))
            position = _behind(text, position)
            continue
        yield value
