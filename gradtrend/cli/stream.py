"""Bytes onto streams that may take fewer than they are given."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO

from gradtrend.pipeline.whole_file import write_all


def write_text(stream: TextIO, text: str) -> None:
    """Write a text to a standard stream, whole; what its encoding lacks is written as an escape. Raises OSError."""
    encoding = stream.encoding or "utf-8"
    binary = getattr(stream, "buffer", None)
    if binary is None:  # replaced by a program that calls us
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
        return
    stream.flush()
    lines = text if os.linesep == "\n" else text.replace("\n", os.linesep)
    write_all(getattr(binary, "raw", binary), lines.encode(encoding, "backslashreplace"))
    binary.flush()


def write_bytes(stream: TextIO, data: bytes) -> None:
    """Write bytes to a standard stream, whole. Raises OSError."""
    stream.flush()
    binary = stream.buffer
    write_all(getattr(binary, "raw", binary), data)
    binary.flush()


def with_buffers() -> None:
    """Give standard output a buffer where it has none (`PYTHONUNBUFFERED`): else Python drops what a write leaves."""
    out = sys.stdout
    raw = getattr(out, "buffer", None)
    if isinstance(out, io.TextIOWrapper) and isinstance(raw, io.FileIO):
        buffered = io.BufferedWriter(raw)
        sys.stdout = io.TextIOWrapper(buffered, out.encoding, out.errors, line_buffering=True, write_through=False)
        out.detach()
