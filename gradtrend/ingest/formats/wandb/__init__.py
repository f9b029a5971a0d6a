"""Weights & Biases: the log of an offline or a synced run, told by its first bytes, and the folder of all runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.reading import Adapter, Reading, ReadOptions
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns, newest

MAGIC = b":W&B"


def _claims(path: Path, head: bytes) -> bool:
    if head or not path.is_dir():
        return head.startswith(MAGIC)
    from gradtrend.ingest.formats.wandb.folder import is_store

    return is_store(path)


def _runs(path: Path, wanted: WantedRuns) -> Sequence[StoredRun]:
    from gradtrend.ingest.formats.wandb.folder import runs_at

    return runs_at(path)


def _read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    from gradtrend.ingest.formats.wandb.folder import read_run, runs_at

    return read_run(options.run or newest(runs_at(path), str(path)))


ADAPTER = Adapter("wandb", _claims, _read, one_run_a_folder=True, runs=_runs)
