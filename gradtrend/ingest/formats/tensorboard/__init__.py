"""TensorBoard event files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.reading import Adapter, Reading, ReadOptions

NAME_PART = "tfevents"  # TensorBoard itself looks for this in the name
VERSION_RECORD = b"brain.Event:"  # the first record of every event file names its version


def _claims(path: Path, head: bytes) -> bool:
    if VERSION_RECORD not in head and NAME_PART not in path.name:
        return False
    from gradtrend.ingest.formats.tensorboard.reader import claims

    return claims(path, head)


def _read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    from gradtrend.ingest.formats.tensorboard.reader import read

    return read(path, options)


ADAPTER = Adapter("tensorboard", _claims, _read, one_run_a_folder=True, folder_a_series=True)
