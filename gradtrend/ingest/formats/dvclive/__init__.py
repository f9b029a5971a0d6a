"""The folder of DVCLive: one small table a metric."""

from __future__ import annotations

from pathlib import Path

from gradtrend.ingest.reading import Reader, late


def _may_be(path: Path, head: bytes) -> bool:
    return not head and path.is_dir()


def _reader() -> Reader:
    from gradtrend.ingest.formats.dvclive import reader

    return reader


ADAPTER = late("dvclive", _may_be, _reader)
