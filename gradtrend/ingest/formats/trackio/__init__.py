"""Trackio's local store."""

from __future__ import annotations

from pathlib import Path

from gradtrend.ingest.reading import SQLITE_MAGIC, Reader, late


def _may_be(path: Path, head: bytes) -> bool:
    return head.startswith(SQLITE_MAGIC)


def _reader() -> Reader:
    from gradtrend.ingest.formats.trackio import reader

    return reader


ADAPTER = late("trackio", _may_be, _reader, one_run_a_folder=True, holds_runs=True)
