"""Tables with a header, and tables of numbers whose columns the user names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from gradtrend.ingest.reading import Reader, Reading, late


def _may_be(path: Path, head: bytes) -> bool:
    return bool(head)


def _reader() -> Reader:
    from gradtrend.ingest.formats.csv import reader

    return reader


def _holds(path: Path, head: bytes, names: Sequence[str]) -> bool:
    from gradtrend.ingest.formats.csv.reader import holds

    return holds(path, head, names)


def read_stream(stream: BinaryIO, columns: Sequence[str] = ()) -> Sequence[Reading]:
    """The table on standard input, its columns named by its header or by `columns`."""
    from gradtrend.ingest.formats.csv import reader

    return reader.read_stream(stream, columns)


ADAPTER = late("csv", _may_be, _reader, read_stream=read_stream, holds=_holds)
