"""Trackio's local store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.reading import SQLITE_MAGIC, Adapter, Reading, ReadOptions


def _claims(path: Path, head: bytes) -> bool:
    if not head.startswith(SQLITE_MAGIC):
        return False
    from gradtrend.ingest.formats.trackio.reader import claims

    return claims(path, head)


def _read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    from gradtrend.ingest.formats.trackio.reader import read

    return read(path, options)


ADAPTER = Adapter("trackio", _claims, _read, one_run_a_folder=True, holds_runs=True)
