"""Weights & Biases: the log of a run, offline or synced, and the folder of all runs."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.reading import Reader, late
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns

MAGIC = b":W&B"
RUN_FOLDER = re.compile(r"(?:offline-)?run-\d{8}_\d{6}-(.+)")


def _may_be(path: Path, head: bytes) -> bool:
    if head:
        return head.startswith(MAGIC)
    try:
        with os.scandir(path) as entries:
            return any(RUN_FOLDER.fullmatch(entry.name) for entry in entries)
    except OSError:  # no folder, or one that may not be looked at
        return False


def _reader() -> Reader:
    from gradtrend.ingest.formats.wandb import reader

    return reader


def _runs(path: Path, wanted: WantedRuns) -> Sequence[StoredRun]:
    from gradtrend.ingest.formats.wandb import reader

    return reader.runs(path, wanted)


ADAPTER = late("wandb", _may_be, _reader, one_run_a_folder=True, runs=_runs)
