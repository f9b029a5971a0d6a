"""Tables with a header."""

from __future__ import annotations

from pathlib import Path

from gradtrend.ingest.reading import Reader, late


def _may_be(path: Path, head: bytes) -> bool:
    return bool(head)


def _reader() -> Reader:
    from gradtrend.ingest.formats.csv import reader

    return reader


ADAPTER = late("csv", _may_be, _reader)
