"""Weights & Biases offline runs: their first bytes tell them, and nothing more is asked of the reader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.reading import Adapter, Reading, ReadOptions

MAGIC = b":W&B"


def _claims(path: Path, head: bytes) -> bool:
    return head.startswith(MAGIC)


def _read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    from gradtrend.ingest.formats.wandb.reader import read

    return read(path, options)


ADAPTER = Adapter("wandb", _claims, _read, one_run_a_folder=True)
