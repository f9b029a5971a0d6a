"""The record log under a .wandb file: LevelDB's log format with a header of its own.

Blocks of 32 KiB; each chunk has a CRC, a length and a type (whole, first, middle, last), and none crosses a block.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.files.streams import open_log, read_whole
from gradtrend.model.runlog import Skipped

_LARGEST = 1 << 30  # bytes
_FILE_HEADER = 7  # magic, two bytes of identity, a version
_BLOCK = 32 * 1024
_CHUNK = struct.Struct("<IHB")
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def records(path: Path, skipped: list[Skipped]) -> Iterator[bytes]:
    """The records in order. Where a block is damaged the rest of it is passed over, and `skipped` says so."""
    with open_log(path) as stream:
        data = read_whole(stream, _LARGEST)
    if len(data) > _LARGEST:
        raise InputError(f"{path}: larger than {_LARGEST >> 30} GiB, too large for one run")
    position = _FILE_HEADER
    parts: list[bytes] = []
    while position < len(data):
        left = _BLOCK - position % _BLOCK
        if left < _CHUNK.size:
            position += left
            continue
        chunk = _chunk(data, position)
        if chunk is None:
            if not data[position : position + left].strip(b"\0"):  # room that the writer left in the block
                position += left
                continue
            cut = position + left >= len(data)
            skipped.append(Skipped("cut off" if cut else "a damaged block", offset=position))
            parts = []
            position += left
            continue
        kind, content = chunk
        position += _CHUNK.size + len(content)
        if kind in (_WHOLE, _FIRST):
            parts = []
        parts.append(content)
        if kind in (_WHOLE, _LAST):
            yield b"".join(parts)
            parts = []


def _chunk(data: bytes, position: int) -> tuple[int, bytes] | None:
    """Type and content of the chunk at a position; None where it is cut off or its checksum is wrong."""
    if position + _CHUNK.size > len(data):
        return None
    checksum, length, kind = _CHUNK.unpack_from(data, position)
    content = data[position + _CHUNK.size : position + _CHUNK.size + length]
    if len(content) < length or not _WHOLE <= kind <= _LAST:
        return None
    matches = zlib.crc32(content, zlib.crc32(bytes([kind]))) == checksum
    return (kind, content) if matches else None
