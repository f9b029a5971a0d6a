"""Text in columns of a terminal, where a wide character takes two and a combining one none."""

from __future__ import annotations

import unicodedata

_WIDE = frozenset({"W", "F"})  # of Unicode's East Asian Width: wide and fullwidth
_NO_WIDTH = frozenset({"Mn", "Me"})  # marks that stand on the character before


def width_of(text: str) -> int:
    """How many columns `text` (escaped already) takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def fitted(text: str, room: int, mark: str) -> str:
    """`text` cut in its middle, where `mark` stands, to at most `room` columns: both ends of a name tell it apart."""
    if width_of(text) <= room:
        return text
    left = max(0, room - len(mark))
    tail = _begun("".join(reversed(text)), left - left // 2)
    return _begun(text, left // 2) + mark + "".join(reversed(tail))


def padded(text: str, room: int) -> str:
    """`text` and blanks up to so many columns."""
    return text + " " * (room - width_of(text))


def _begun(text: str, room: int) -> str:
    taken = 0
    for place, char in enumerate(text):
        taken += _columns(char)
        if taken > room:
            return text[:place]
    return text


def _columns(char: str) -> int:
    if unicodedata.category(char) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1
