"""JSON logs of the OpenMMLab family."""

from __future__ import annotations

from pathlib import Path

from gradtrend.ingest.files.streams import mentions
from gradtrend.ingest.reading import Reader, late


def _may_be(path: Path, head: bytes) -> bool:
    return mentions(head, b'"iter"')


def _reader() -> Reader:
    from gradtrend.ingest.formats.mmengine import reader

    return reader


ADAPTER = late("mmengine", _may_be, _reader)
