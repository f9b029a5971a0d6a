"""Trackio's local store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.reading import SQLITE_MAGIC, Reader, late
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns


def _may_be(path: Path, head: bytes) -> bool:
    return head.startswith(SQLITE_MAGIC)


def _reader() -> Reader:
    from gradtrend.ingest.formats.trackio import reader

    return reader


def _runs(path: Path, wanted: WantedRuns) -> Sequence[StoredRun]:
    from gradtrend.ingest.formats.trackio import reader

    return reader.runs(path, wanted)


ADAPTER = late("trackio", _may_be, _reader, one_run_a_folder=True, runs=_runs)
