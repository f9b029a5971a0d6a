"""TFRecord framing: where the records of a file lie, and which of them are damaged.

A record is its length (u64, little-endian), a masked CRC-32C of these 8 bytes, the payload, and a masked CRC-32C of the
payload. The length has a checksum of its own, so a record whose payload alone is damaged is skipped and reading goes on
behind it: one flipped bit does not hide the collapse that follows. Where the length itself is damaged, the next valid
header is searched for.
"""

from __future__ import annotations

import mmap
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradtrend.errors import InputError
from gradtrend.model.runlog import Skipped

HEADER_BYTES = 12
FRAME_BYTES = 16  # header and the checksum behind the payload
_MASK_DELTA = 0xA282EAD8  # the constant of the TFRecord format
_SEARCH_SPAN = 1 << 20  # a torn write spoils file-system blocks (4 KiB to some 100 KiB); beyond that, give up
STRETCH = 256  # records that must repeat before more of the same are looked for: twice the tags that a program logs
LOOKED_AT = 1 << 18  # records that are compared at once, which takes some 10 MB
# A header of a record under 4 GiB has four zero bytes at offset 4; searching for them is quicker than trying each byte.
_LENGTH_PATTERN = re.compile(rb"(?=.{4}\0\0\0\0.{4})", re.DOTALL)

Bytes = bytes | mmap.mmap
Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Records:
    """The undamaged records: byte offset and length of each payload, in file order, and what was skipped."""

    starts: Offsets
    lengths: Offsets
    damage: tuple[Skipped, ...]


def map_file(path: Path) -> Bytes:
    """The bytes of a file, mapped into memory where that works (event files with images reach gigabytes).

    Raises InputError where the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            try:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except (ValueError, OSError):  # an empty file, or a file system without mapping
                return file.read()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def masked_crc(data: bytes) -> int:
    """The CRC-32C of `data` as TFRecord stores it."""
    from crc32c import crc32c

    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def header_length(header: bytes) -> int | None:
    """The payload length a record header gives, None where the header is cut or fails its checksum."""
    if len(header) < HEADER_BYTES:
        return None
    length, crc = struct.unpack("<QI", header)
    return int(length) if masked_crc(header[:8]) == crc else None


def scan(data: Bytes) -> Records:
    """All records, checked. Never raises on damaged data."""
    where, damage = walk_headers(data)
    sizes = unaligned(data, "<u8")[where - HEADER_BYTES].astype(np.int64)
    good = _payload_crc_matches(data, where, sizes)
    damage += [
        Skipped("record fails its checksum", offset=int(start) - HEADER_BYTES) for start in where[~good].tolist()
    ]
    damage.sort(key=lambda piece: piece.offset or 0)
    return Records(where[good], sizes[good], tuple(damage))


def walk_headers(data: Bytes) -> tuple[Offsets, list[Skipped]]:
    """The offsets of the payloads and the damage found on the way, payloads unchecked."""
    parts: list[Offsets] = []
    starts: list[int] = []
    damage: list[Skipped] = []
    valid: dict[bytes, int] = {}  # most records share a few lengths, so each header is checked only once
    size, position = len(data), 0
    while position < size:
        header = data[position : position + HEADER_BYTES]
        length = valid.get(header)
        if length is None:
            length = header_length(header)
            if length is None:
                position = _step_over(data, position, damage)
                continue
            valid[header] = length
        end = position + FRAME_BYTES + length
        if end > size:
            damage.append(Skipped("truncated: the file ends inside a record", offset=position))
            break
        starts.append(position + HEADER_BYTES)
        position = end
        if len(starts) == STRETCH:
            parts.append(np.array(starts, np.int64))
            starts = []
            position = _follow(data, position, parts)
    return np.concatenate([*parts, np.array(starts, np.int64)]), damage


def _follow(data: Bytes, position: int, parts: list[Offsets]) -> int:
    """Where the records from `position` on end that repeat the lengths of the last ones; they are added to `parts`.

    A program that logs the same tags at each step writes the same lengths again and again. Each header is compared
    with the one that it repeats, checksum and all.
    """
    lengths, checksums = unaligned(data, "<u8"), unaligned(data, "<u4")
    last = parts[-1] - HEADER_BYTES
    gaps = np.diff(last, append=position)
    period = _period_of(gaps)
    if period is None or (gaps != lengths[last].astype(np.int64) + FRAME_BYTES).any():  # damage lies between them
        return position
    like, span = last[-period:], int(gaps[-period:].sum())
    most = max(1, LOOKED_AT // period)
    repeats, same = 1, True
    while same and (repeats := min(8 * repeats, most, (len(data) - position) // span)):
        headers = (position + span * np.arange(repeats)[:, None] + (like - like[0])).ravel()
        known = np.tile(like, repeats)
        equal = (lengths[headers] == lengths[known]) & (checksums[headers + 8] == checksums[known + 8])
        same = bool(equal.all())
        found = headers if same else headers[: int(np.argmin(equal))]
        parts.append(found + HEADER_BYTES)
        position = position + repeats * span if same else int(headers[found.size])
    return position


def _period_of(gaps: Offsets) -> int | None:
    """After how many records the gaps between records repeat, None where they do not do so all along."""
    longest = gaps.size // 2
    return next((n for n in range(1, longest + 1) if (gaps[n:] == gaps[:-n]).all()), None)


def _step_over(data: Bytes, position: int, damage: list[Skipped]) -> int:
    """Where the next valid header stands, at the end if none does; the bad one at `position` is added to `damage`."""
    if len(data) - position < HEADER_BYTES:
        damage.append(Skipped("truncated: the file ends inside a record", offset=position))
        return len(data)
    window = data[position + 1 : position + 1 + _SEARCH_SPAN]
    for match in _LENGTH_PATTERN.finditer(window):
        found = match.start()
        if header_length(window[found : found + HEADER_BYTES]) is not None:
            following = position + 1 + found
            damage.append(Skipped(f"damaged up to byte {following}", offset=position))
            return following
    damage.append(Skipped("damaged from here on", offset=position))
    return len(data)


def _payload_crc_matches(data: Bytes, starts: Offsets, lengths: Offsets) -> NDArray[np.bool_]:
    """Whether the payload of each record has the checksum stored behind it."""
    from crc32c import crc32c

    if not starts.size:
        return np.zeros(0, np.bool_)
    view = memoryview(data)
    ends = starts + lengths
    payloads = map(view.__getitem__, map(slice, starts.tolist(), ends.tolist()))
    crc = np.fromiter(map(crc32c, payloads), np.uint32, starts.size)
    masked = ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(_MASK_DELTA)
    good: NDArray[np.bool_] = masked == unaligned(data, "<u4")[ends]
    return good


def unaligned(data: Bytes, dtype: str) -> NDArray[Any]:
    """A view whose element i is the value of `dtype` that starts at byte i."""
    count = max(0, len(data) - np.dtype(dtype).itemsize + 1)
    return np.ndarray((count,), dtype, buffer=data, strides=(1,))
