"""MLflow stores of every form: a tracking server, `mlruns/`, `mlflow.db`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.reading import SQLITE_MAGIC, Adapter, Reading, ReadOptions


def _claims(path: Path, head: bytes) -> bool:
    is_file_of_it = head.startswith(SQLITE_MAGIC) or "mlflow" in path.name
    if not is_file_of_it and not path.as_posix().startswith("http") and not path.is_dir():
        return False
    from gradtrend.ingest.formats.mlflow.reader import claims

    return claims(path, head)


def _read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    from gradtrend.ingest.formats.mlflow.reader import read

    return read(path, options)


ADAPTER = Adapter("mlflow", _claims, _read, one_run_a_folder=True, holds_runs=True)
