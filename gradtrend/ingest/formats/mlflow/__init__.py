"""MLflow stores of every form: a tracking server, `mlruns/`, `mlflow.db`."""

from __future__ import annotations

from pathlib import Path

from gradtrend.ingest.reading import SQLITE_MAGIC, Reader, late


def _may_be(path: Path, head: bytes) -> bool:
    is_file_of_it = head.startswith(SQLITE_MAGIC) or "mlflow" in path.name
    return is_file_of_it or path.as_posix().startswith("http") or path.is_dir()


def _reader() -> Reader:
    from gradtrend.ingest.formats.mlflow import reader

    return reader


ADAPTER = late("mlflow", _may_be, _reader, one_run_a_folder=True, holds_runs=True)
