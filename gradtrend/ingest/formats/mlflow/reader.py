"""MLflow in each of its forms, as one source: a tracking server, a file store, a sqlite store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.formats.mlflow import files as mlflow_files
from gradtrend.ingest.formats.mlflow import server as mlflow_server
from gradtrend.ingest.formats.mlflow import sqlite as mlflow_sqlite
from gradtrend.ingest.reading import Reading, ReadOptions


def claims(path: Path, head: bytes) -> bool:
    """Whether a path is an MLflow store of any form."""
    return any(form.claims(path, head) for form in (mlflow_server, mlflow_files, mlflow_sqlite))


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """One run of the store. Raises InputError as its form does."""
    if mlflow_server.claims(path, b""):
        return mlflow_server.read(path, options)
    return mlflow_files.read(path, options) if path.is_dir() else mlflow_sqlite.read(path, options)
