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
from gradtrend.ingest.limits import LARGEST_WANDB
from gradtrend.model.runlog import Skipped

_FILE_HEADER = 7  # magic, two bytes of identity, a version
_BLOCK = 32 * 1024
_CHUNK = struct.Struct("<IHB")
_DAMAGE, _WHOLE, _FIRST, _MIDDLE, _LAST = 0, 1, 2, 3, 4  # the first is not of the format


def records(path: Path, skipped: list[Skipped], head: int | None = None) -> Iterator[bytes]:
    """The records in order, or those that lie whole in so many bytes of the head. Where a block is damaged the rest of
    it is passed over, and `skipped` says so.
    """
    with open_log(path) as stream:
        data = read_whole(stream, LARGEST_WANDB) if head is None else stream.read(head)
    if len(data) > LARGEST_WANDB:
        raise InputError(f"{path}: larger than {LARGEST_WANDB >> 30} GiB, too large for one run")
    parts: list[bytes] = []
    for kind, content in _chunks(data, skipped):
        if kind in (_WHOLE, _FIRST, _DAMAGE):
            parts = []
        parts.append(content)
        if kind in (_WHOLE, _LAST):
            yield b"".join(parts)
            parts = []


def _chunks(data: bytes, skipped: list[Skipped]) -> Iterator[tuple[int, bytes]]:
    """Type and content of each chunk; an empty one of the type _DAMAGE for the damaged rest of a block."""
    position = _FILE_HEADER
    while position < len(data):
        left = _BLOCK - position % _BLOCK
        chunk = _chunk(data, position) if left >= _CHUNK.size else None
        if chunk is not None:
            position += _CHUNK.size + len(chunk[1])
            yield chunk
            continue
        if left >= _CHUNK.size and data[position : position + left].strip(b"\0"):  # not room that the writer left
            skipped.append(Skipped("cut off" if position + left >= len(data) else "a damaged block", offset=position))
            yield _DAMAGE, b""
        position += left


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
