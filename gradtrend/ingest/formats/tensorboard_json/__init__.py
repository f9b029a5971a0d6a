"""A series as TensorBoard downloads it in JSON."""

from __future__ import annotations

from pathlib import Path

from gradtrend.ingest.files.streams import mentions
from gradtrend.ingest.reading import Reader, late


def _may_be(path: Path, head: bytes) -> bool:
    return mentions(head, b"[")


def _reader() -> Reader:
    from gradtrend.ingest.formats.tensorboard_json import reader

    return reader


ADAPTER = late("tensorboard-json", _may_be, _reader)
