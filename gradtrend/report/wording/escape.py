"""Text from logs (metric names, paths, messages) made safe to show on a terminal."""

from __future__ import annotations

import unicodedata

# Cc and Cf: control (and so ANSI), bidirectional and zero-width characters; Cs: the lone surrogates of file names
# that are not UTF-8; Zl and Zp: line breaks in some terminals.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_MIDDLE = "…"


def escape(text: str) -> str:
    """`text` with \\xNN for each character that could move the cursor, colour or reorder text."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape_one(char) for char in text)


def shorten(text: str, limit: int, mark: str = _MIDDLE) -> str:
    """`text` cut in its middle to at most `limit` characters: both ends of a name tell it apart."""
    if len(text) <= limit:
        return text
    head = (limit - len(mark)) // 2
    tail = limit - len(mark) - head
    return text[:head] + mark + text[len(text) - tail :]


def cut_short(text: str, limit: int) -> str:
    """A sentence cut after a word to at most `limit` characters: its beginning says the most."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    return (head.rpartition(" ")[0] or head) + "…"


def _escape_one(char: str) -> str:
    if unicodedata.category(char) not in _UNSAFE:
        return char
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file name that is no UTF-8, as Python decodes it
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
