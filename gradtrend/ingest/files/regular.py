"""Regular files, and nothing but files: a pipe or a device may wait, or go on, for ever."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
from pathlib import Path


def size_and_time(path: Path) -> tuple[int | None, float | None]:
    """The bytes of a regular file, and when it was written to in seconds since the epoch; None for what is none."""
    try:
        status = path.stat()
    except (OSError, ValueError):  # gone, an address, or no name that a file can have
        return None, None
    return (status.st_size, status.st_mtime) if stat.S_ISREG(status.st_mode) else (None, None)


def without_waiting(name: str, flags: int) -> int:
    """Opens a file, for `opener` of Python's own ways to do so; of a pipe without waiting for who writes to it."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def open_regular(path: Path) -> io.FileIO:
    """A regular file, unbuffered. Raises OSError where it is none or cannot be read."""
    file = io.FileIO(path, opener=without_waiting)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def buffered(path: Path) -> io.BufferedReader:
    """As `open_regular`, buffered. Every reader opens its files by one of these: what was a file when it was found may
    be a pipe by now.
    """
    return io.BufferedReader(open_regular(path))


def copy_regular(path: Path, target: Path) -> None:
    """Copies the bytes of a regular file to a new one. Raises OSError where it is none or cannot be read."""
    with buffered(path) as source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy)


def read_regular(path: Path, most: int = 1 << 30) -> bytes:
    """The bytes of a regular file. Raises OSError where it is none, cannot be read, or holds more than `most` bytes."""
    with buffered(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise OSError(f"{path} is larger than {most:,} bytes")
        return file.read(most)
