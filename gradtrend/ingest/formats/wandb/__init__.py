"""Weights & Biases offline runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.reading import Adapter, Reading, ReadOptions

MAGIC = b":W&B"


def _claims(path: Path, head: bytes) -> bool:
    if not head.startswith(MAGIC):
        return False
    from gradtrend.ingest.formats.wandb.reader import claims

    return claims(path, head)


def _read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    from gradtrend.ingest.formats.wandb.reader import read

    return read(path, options)


ADAPTER = Adapter("wandb", _claims, _read, one_run_a_folder=True)
