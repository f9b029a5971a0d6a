"""Regular files, and nothing but files: a pipe or a device may wait, or go on, for ever."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path


def open_regular(path: Path) -> io.FileIO:
    """A regular file, unbuffered. Raises OSError where it is none or cannot be read."""
    file = io.FileIO(path, opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0)))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(f"{path} is not a regular file")
    return file


def read_regular(path: Path, most: int = 1 << 30) -> bytes:
    """The bytes of a regular file. Raises OSError where it is none, cannot be read, or holds more than `most` bytes."""
    with io.BufferedReader(open_regular(path)) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise OSError(f"{path} is larger than {most:,} bytes")
        return file.read(most)
