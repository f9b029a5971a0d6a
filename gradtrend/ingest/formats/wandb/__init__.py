"""Weights & Biases: the log of a run, offline or synced, and the folder of all runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.reading import Reader, late
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns

_MAGIC = b":W&B"


def _may_be(path: Path, head: bytes) -> bool:
    return head.startswith(_MAGIC) or (not head and path.is_dir())


def _reader() -> Reader:
    from gradtrend.ingest.formats.wandb import reader

    return reader


def _runs(path: Path, wanted: WantedRuns) -> Sequence[StoredRun]:
    from gradtrend.ingest.formats.wandb import reader

    return reader.runs(path, wanted)


ADAPTER = late("wandb", _may_be, _reader, one_run_a_folder=True, runs=_runs)
