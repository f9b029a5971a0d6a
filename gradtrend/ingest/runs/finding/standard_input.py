"""`-` and named pipes: a console log, or JSON lines, as a stream. It can be read once and has no name to go by."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

from gradtrend.errors import InputError
from gradtrend.ingest.files.streams import head_of
from gradtrend.ingest.formats import adapters_of, read_columns
from gradtrend.ingest.limits import SECONDS_FOR_A_PIPE
from gradtrend.ingest.reading import HEAD_BYTES, Adapter, Reading, ReadOptions
from gradtrend.ingest.settings.lines import with_lines

PATH = Path("-")
_PAUSE_SECONDS = 0.02
_PIPE_IN = "Pipe a log into it: python train.py 2>&1 | gradtrend analyze -"


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


def adapter(source: str, path: Path = PATH) -> Adapter:
    """The reader of standard input, or of the pipe at `path`; `source` names the format, or is `auto`.

    Raises InputError for a format that needs a file.
    """
    if not _streamed(source):
        place = "standard input" if path == PATH else "a pipe"
        raise InputError(
            f"{path}: {source} cannot be read from {place}",
            f"Known there: {', '.join(sorted(a.name for a in _streamed('auto')))}. Give the file itself.",
        )
    return Adapter(source, lambda other, head: other == path, partial(_read, source))


def _streamed(source: str) -> list[Adapter]:
    """The adapters of that format, or of all, that can read a stream."""
    return [a for a in adapters_of(source) if a.read_stream is not None and source in ("auto", a.name)]


def _read(source: str, path: Path, options: ReadOptions) -> Sequence[Reading]:
    try:
        if path == PATH:
            return _from_stream(source, _standard_input(), "-: nothing came on standard input", options)
        with _open_pipe(path) as stream:
            readings = _from_stream(source, stream, f"{path}: nothing came through this pipe", options)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    return [replace(reading, path=path) for reading in readings]


def _standard_input() -> BinaryIO:
    if sys.stdin is None:  # closed by whoever started this
        raise InputError("-: standard input is closed", _PIPE_IN)
    return sys.stdin.buffer


def _from_stream(source: str, stream: BinaryIO, empty: str, options: ReadOptions) -> Sequence[Reading]:
    head = head_of(stream, HEAD_BYTES)
    if not head.strip():
        raise InputError(empty, _PIPE_IN)
    whole = io.BufferedReader(cast(io.RawIOBase, _PutBack(head, stream)))
    if options.columns:
        return read_columns(whole, options.columns)
    wanted = _streamed(source)
    known = (one for one in wanted if one.holds is not None and one.holds(PATH, head, options.names))
    chosen = next(chain(known, (one for one in wanted if one.claims(PATH, head))), wanted[-1])
    assert chosen.read_stream is not None
    return [with_lines(reading, head) for reading in chosen.read_stream(whole)]


@contextmanager
def _open_pipe(path: Path) -> Iterator[BinaryIO]:
    """A named pipe (`<(zcat log.gz)` is one), from which everything is read that its writers give.

    Raises InputError where nobody begins to write within SECONDS_FOR_A_PIPE: to open it plainly would wait for ever.
    """
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(pipe, "rb") as stream:
        head = _first_bytes(pipe, time.monotonic() + SECONDS_FOR_A_PIPE)
        if head is None:
            raise InputError(f"{path}: nobody writes to this pipe", _PIPE_IN)
        os.set_blocking(pipe, True)
        yield io.BufferedReader(_PutBack(head, stream))


def _first_bytes(pipe: int, until: float) -> bytes | None:
    """What already lies in a pipe, b"" where a writer has written nothing yet, None without a writer until then."""
    while time.monotonic() < until:
        try:
            head = os.read(pipe, HEAD_BYTES)
        except BlockingIOError:
            return b""
        if head:
            return head
        time.sleep(_PAUSE_SECONDS)
    return None
