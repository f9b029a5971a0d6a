"""A series as TensorBoard downloads it in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.files.streams import mentions
from gradtrend.ingest.reading import Adapter, Reading, ReadOptions


def _claims(path: Path, head: bytes) -> bool:
    if not mentions(head, b"["):
        return False
    from gradtrend.ingest.formats.tensorboard_json.reader import claims

    return claims(path, head)


def _read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    from gradtrend.ingest.formats.tensorboard_json.reader import read

    return read(path, options)


ADAPTER = Adapter("tensorboard-json", _claims, _read)
