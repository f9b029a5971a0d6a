"""Console text, by any framework."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from gradtrend.ingest.reading import Reader, Reading, late


def _may_be(path: Path, head: bytes) -> bool:
    return bool(head)


def _reader() -> Reader:
    from gradtrend.ingest.formats.console import reader

    return reader


def _read_stream(stream: BinaryIO) -> Sequence[Reading]:
    from gradtrend.ingest.formats.console.reader import read_stream

    return read_stream(stream)


ADAPTER = late("console", _may_be, _reader, read_stream=_read_stream)
