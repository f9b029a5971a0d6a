"""Objects as files of a mirror: of the right name, size and time, with their first bytes or all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
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
    with path.open("xb") as file:
        file.truncate(held.size)
    os.utime(path, (held.modified, held.modified))


@contextmanager
def written(path: Path, held: Held) -> Iterator[FileIO]:
    """A file of the mirror to be written to; afterwards it has the object's size and time."""
    with FileIO(path, "r+") as file:
        yield file
        file.truncate(held.size)
    os.utime(path, (held.modified, held.modified))


def write_at(file: FileIO, place: int, data: bytes) -> None:
    """Write all of some bytes."""
    file.seek(place)
    left = memoryview(data)
    while left:
        left = left[file.write(left) or 0 :]


def empty_again(path: Path, held: Held) -> None:
    """Give back what a file takes on this disk beyond the bytes that are `present`."""
    with written(path, held) as file:
        file.truncate(held.present)


def folder_name(part: str) -> str:
    """A part of an address as the name of a folder."""
    name = "".join("_" if c in '/\\\0:*?"<>|' or c.isspace() else c for c in part)[:100]
    return name if name not in _NO_NAMES else "_"
