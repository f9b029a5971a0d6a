"""MLflow stores of every form: a tracking server, `mlruns/`, `mlflow.db`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.reading import SQLITE_MAGIC, Address, Reader, late
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns

SERVER = re.compile(r"^(https?):/+(.+)$")  # its address; `Path` turns `//` into `/`


def _may_be(path: Path, head: bytes) -> bool:
    is_file_of_it = head.startswith(SQLITE_MAGIC) or "mlflow" in path.name
    return is_file_of_it or SERVER.match(path.as_posix()) is not None or path.is_dir()


def _reader() -> Reader:
    from gradtrend.ingest.formats.mlflow import reader

    return reader


def _runs(path: Path, wanted: WantedRuns) -> Sequence[StoredRun]:
    from gradtrend.ingest.formats.mlflow import reader

    return reader.runs(path, wanted)


def _address(text: str) -> Address | None:
    from gradtrend.ingest.formats.mlflow.address import address_of

    return address_of(text)


ADAPTER = late("mlflow", _may_be, _reader, one_run_a_folder=True, runs=_runs, address=_address)
