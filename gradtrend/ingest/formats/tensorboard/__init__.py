"""TensorBoard event files."""

from __future__ import annotations

from pathlib import Path

from gradtrend.ingest.reading import Reader, late

NAME_PART = "tfevents"  # TensorBoard itself looks for this in the name
VERSION_RECORD = b"brain.Event:"  # the first record of every event file names its version


def _may_be(path: Path, head: bytes) -> bool:
    return VERSION_RECORD in head or NAME_PART in path.name


def _reader() -> Reader:
    from gradtrend.ingest.formats.tensorboard import reader

    return reader


ADAPTER = late("tensorboard", _may_be, _reader, one_run_a_folder=True, folder_a_series=True)
