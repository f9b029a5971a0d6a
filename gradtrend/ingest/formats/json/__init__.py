"""transformers' trainer_state.json and other JSON documents of a training's history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradtrend.ingest.files.streams import mentions
from gradtrend.ingest.reading import Adapter, Reading, ReadOptions


def _claims(path: Path, head: bytes) -> bool:
    if not mentions(head, b"{", b"["):
        return False
    from gradtrend.ingest.formats.json.reader import claims

    return claims(path, head)


def _read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    from gradtrend.ingest.formats.json.reader import read

    return read(path, options)


ADAPTER = Adapter("trainer-state", _claims, _read)
