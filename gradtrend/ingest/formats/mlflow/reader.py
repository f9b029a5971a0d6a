"""MLflow in each of its forms, as one source: a tracking server, a file store, a sqlite store.

Every folder of a tree is asked, and few are of MLflow: a form is loaded only where a path can be of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from gradtrend.ingest.formats.mlflow import SERVER
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns


class _Form(NamedTuple):
    claims: Callable[[Path, bytes], bool]
    runs: Callable[[Path, WantedRuns], Sequence[StoredRun]]
    read: Callable[[Path, ReadOptions], Sequence[Reading]]


def claims(path: Path, head: bytes) -> bool:
    """Whether a path is an MLflow store of any form."""
    return _form_of(path).claims(path, head)


def runs(path: Path, wanted: WantedRuns) -> Sequence[StoredRun]:
    """The runs of the store. Raises InputError as its form does."""
    return _form_of(path).runs(path, wanted)


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """One run of the store. Raises InputError as its form does."""
    return _form_of(path).read(path, options)


def _form_of(path: Path) -> _Form:
    """The one form that a path can be of."""
    if SERVER.match(path.as_posix()):
        from gradtrend.ingest.formats.mlflow import server

        return _Form(lambda path, head: True, server.runs, server.read)
    if path.is_dir():
        from gradtrend.ingest.formats.mlflow import files

        return _Form(files.claims, files.runs, files.read)
    from gradtrend.ingest.formats.mlflow import sqlite

    return _Form(sqlite.claims, lambda path, wanted: sqlite.runs(path), sqlite.read)
