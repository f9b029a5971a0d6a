"""Tables with a header."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.reading import Adapter, Reading, ReadOptions


def _claims(path: Path, head: bytes) -> bool:
    if not head:
        return False
    from gradtrend.ingest.formats.csv.reader import claims

    return claims(path, head)


def _read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    from gradtrend.ingest.formats.csv.reader import read

    return read(path, options)


ADAPTER = Adapter("csv", _claims, _read)
