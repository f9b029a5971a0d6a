"""Objects as files of a mirror: of the right name, size and time, with their first bytes or all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradtrend.ingest.remote.objects import Held

_NO_NAMES = frozenset({"", ".", ".."})


def path_of(root: Path, key: str) -> Path | None:
    """Where an object lies in a mirror; None for a key that is no path below it."""
    parts = key.split("/")
    if any(part in _NO_NAMES or "\0" in part or (os.sep != "/" and (os.sep in part or ":" in part)) for part in parts):
        return None
    return root.joinpath(*parts)


def make(path: Path, held: Held) -> None:
    """A new file of that size, without a byte. Raises OSError, also where something has its name already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.ftruncate(handle, held.size)
    finally:
        os.close(handle)
    os.utime(path, (held.modified, held.modified))


@contextmanager
def written(path: Path, held: Held) -> Iterator[int]:
    """A file of the mirror to be written to, by its handle; afterwards it has the object's size and time."""
    handle = os.open(path, os.O_WRONLY)
    try:
        yield handle
        os.ftruncate(handle, held.size)
    finally:
        os.close(handle)
    os.utime(path, (held.modified, held.modified))


def empty_again(path: Path, held: Held) -> None:
    """Give back what a file takes on this disk beyond the bytes that are `present`."""
    with written(path, held) as handle:
        os.ftruncate(handle, held.present)


def folder_name(part: str) -> str:
    """A part of an address as the name of a folder."""
    name = "".join("_" if c in '/\\\0:*?"<>|' or c.isspace() else c for c in part)[:100]
    return name if name not in _NO_NAMES else "_"
