"""A table that a program holds, read as a file of it would be."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.formats import read_columns
from gradtrend.ingest.reading import Adapter, Reading, ReadOptions
from gradtrend.ingest.runs.finding.run_files import RunFiles
from gradtrend.ingest.runs.finding.tree import LogFile

_NAME = "table"


def run_of_table(csv: bytes) -> RunFiles:
    """The run whose log is this table, comma-separated, with a first line that names its columns."""
    place = Path(_NAME)
    return RunFiles(_NAME, place, (LogFile(place, Adapter(_NAME, _claims, partial(_read, csv))),), is_stream=True)


def _claims(path: Path, head: bytes) -> bool:
    return False


def _read(csv: bytes, path: Path, options: ReadOptions) -> Sequence[Reading]:
    try:
        readings = read_columns(io.BytesIO(csv), options.columns)
    except InputError as error:
        raise InputError(f"{_NAME}: {error.message.removeprefix('-: ')}", error.hint) from error
    return [replace(reading, format=_NAME, path=path) for reading in readings]
