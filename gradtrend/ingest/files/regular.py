"""Small files read whole, and nothing but files: a pipe or a device may wait, or go on, for ever."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_regular(path: Path, most: int = 1 << 30) -> bytes:
    """The bytes of a regular file. Raises OSError where it is none, cannot be read, or holds more than `most` bytes."""
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123  a descriptor
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        if status.st_size > most:
            raise OSError(f"{path} is larger than {most:,} bytes")
        return file.read(most)
