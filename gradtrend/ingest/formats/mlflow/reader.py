"""MLflow in each of its forms, as one source: a tracking server, a file store, a sqlite store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.formats.mlflow import files, server, sqlite
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns


def claims(path: Path, head: bytes) -> bool:
    """Whether a path is an MLflow store of any form."""
    return any(form.claims(path, head) for form in (server, files, sqlite))


def runs(path: Path, wanted: WantedRuns) -> Sequence[StoredRun]:
    """The runs of the store. Raises InputError as its form does."""
    if server.claims(path, b""):
        return server.runs(path, wanted)
    return files.runs(path, wanted) if path.is_dir() else sqlite.runs(path)


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """One run of the store. Raises InputError as its form does."""
    if server.claims(path, b""):
        return server.read(path, options)
    return files.read(path, options) if path.is_dir() else sqlite.read(path, options)
