"""metrics.jsonl and its like: one JSON object a line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from gradtrend.ingest.reading import Reader, Reading, late


def _may_be(path: Path, head: bytes) -> bool:
    return True  # its name alone may tell it, and the reader is small


def _reader() -> Reader:
    from gradtrend.ingest.formats.jsonl import reader

    return reader


def _read_stream(stream: BinaryIO) -> Sequence[Reading]:
    from gradtrend.ingest.formats.jsonl.reader import read_stream

    return read_stream(stream)


ADAPTER = late("jsonl", _may_be, _reader, read_stream=_read_stream)
