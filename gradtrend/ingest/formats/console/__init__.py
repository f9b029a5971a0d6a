"""Console text, by any framework."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from gradtrend.ingest.reading import Adapter, Reading, ReadOptions


def _claims(path: Path, head: bytes) -> bool:
    if not head:
        return False
    from gradtrend.ingest.formats.console.reader import claims

    return claims(path, head)


def _read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    from gradtrend.ingest.formats.console.reader import read

    return read(path, options)


def _read_stream(stream: BinaryIO) -> Sequence[Reading]:
    from gradtrend.ingest.formats.console.reader import read_stream

    return read_stream(stream)


ADAPTER = Adapter("console", _claims, _read, read_stream=_read_stream)
