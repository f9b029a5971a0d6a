"""A file written at once: who reads it sees the old one or the new one, never a part."""

from __future__ import annotations

import io
import os
import select
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO

PREFIX = ".gradtrend-"  # of the file that becomes the report: a name made of the report's could be too long


def replace_whole(target: Path, data: bytes) -> None:
    """Put a file with these bytes in place of one, with its mode. Raises OSError, and the old file is still there."""
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=PREFIX)
    try:
        with os.fdopen(handle, "wb", buffering=0) as file:
            write_all(file, data)
            os.fsync(handle)  # a full disk or quota may be told only now, and the old report is still there
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_all(file: io.RawIOBase | BinaryIO, data: bytes) -> None:
    """Write every byte: a raw stream may take a part (a disk that becomes full, a pipe whose reader is slow), or none
    for now. Raises OSError where no more can be written.
    """
    left = memoryview(data)
    while left:
        count = file.write(left)
        if count is None:  # a pipe that does not wait
            select.select([], [file.fileno()], [])
            continue
        left = left[count:]


def encoded(text: str | bytes) -> bytes:
    """A report as bytes: a lone surrogate, which a file's name may hold, as an escape."""
    return text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")


def _umask() -> int:
    current = os.umask(0)  # the only way to read it is to set it
    os.umask(current)
    return current
