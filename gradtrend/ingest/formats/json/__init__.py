"""transformers' trainer_state.json and other JSON documents of a training's history."""

from __future__ import annotations

from pathlib import Path

from gradtrend.ingest.files.streams import mentions
from gradtrend.ingest.reading import Reader, late


def _may_be(path: Path, head: bytes) -> bool:
    return mentions(head, b"{", b"[")


def _reader() -> Reader:
    from gradtrend.ingest.formats.json import reader

    return reader


ADAPTER = late("trainer-state", _may_be, _reader)
