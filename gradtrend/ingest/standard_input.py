"""`-`: a console log, or JSON lines, on standard input. It can be read once and has no name to go by."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from gradtrend.errors import InputError
from gradtrend.ingest.reading import Adapter, Reading, ReadOptions

PATH = Path("-")
_HEAD_BYTES = 64 * 1024  # enough for the first rows of any log
_FORMATS = ("console", "jsonl")


class _PutBack(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        piece = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)


def adapter(source: str) -> Adapter:
    """The reader of standard input; `source` names the format, or is `auto`.

    Raises InputError for a format that needs a file.
    """
    if source not in ("auto", *_FORMATS):
        raise InputError(
            f"-: {source} cannot be read from standard input",
            f"Known there: {', '.join(_FORMATS)}. Give the file itself.",
        )
    return Adapter(source, lambda path, head: path == PATH, partial(_read, source))


def _read(source: str, path: Path, options: ReadOptions) -> Sequence[Reading]:
    from gradtrend.ingest import console, jsonl  # a path given as a file must not load both

    stream = sys.stdin.buffer
    head = stream.read(_HEAD_BYTES)
    if not head.strip():
        raise InputError(
            "-: nothing came on standard input", "Pipe a log into it: python train.py 2>&1 | gradtrend analyze -"
        )
    if source == "auto":
        source = "jsonl" if jsonl.claims(path, head) else "console"
    reader = jsonl.read_stdin if source == "jsonl" else console.read_stdin
    return reader(io.BufferedReader(cast(io.RawIOBase, _PutBack(head, stream))))
