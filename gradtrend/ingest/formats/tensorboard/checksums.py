"""The checksums of TFRecord: a masked CRC-32C over the length of a record, another over its payload."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEADER_BYTES = 12
FRAME_BYTES = 16  # header and the checksum behind the payload
_MASK_DELTA = 0xA282EAD8  # the constant of the TFRecord format
_LOOKED_THROUGH = 1 << 16  # bytes that are searched for headers at once, in a fraction of a millisecond

Bytes = bytes | memoryview
Offsets = NDArray[np.int64]


def masked_crc(data: Bytes) -> int:
    """The CRC-32C of `data` as TFRecord stores it."""
    from crc32c import crc32c

    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def header_length(header: Bytes) -> int | None:
    """The payload length a record header gives, None where the header is cut or fails its checksum."""
    if len(header) < HEADER_BYTES:
        return None
    length, crc = struct.unpack("<QI", header)
    return int(length) if masked_crc(header[:8]) == crc else None


def payload_checksums(data: Bytes, starts: Offsets, lengths: Offsets, repeats: int) -> NDArray[np.uint32]:
    """The masked CRC-32C of each payload, given by its byte offset and its length.

    `repeats` above 1 says that the records lie one behind the other, their lengths the same ones again so many times.
    """
    from crc32c import crc32c

    payloads: Iterator[Bytes]
    if repeats > 1:  # one unpacking cuts the payloads out of the data in a third of the time that slices take
        period = lengths[: lengths.size // repeats].tolist()
        unpacking = struct.Struct("<" + "".join([f"{HEADER_BYTES}x{length}s4x" for length in period]))
        begin = int(starts[0]) - HEADER_BYTES
        payloads = chain.from_iterable(unpacking.iter_unpack(data[begin : begin + repeats * unpacking.size]))
    else:
        payloads = map(data.__getitem__, map(slice, starts.tolist(), (starts + lengths).tolist()))
    return _masked(np.fromiter(map(crc32c, payloads), np.uint32, starts.size))


class HeaderSearch:
    """Looks in one piece of a file for valid headers; what was found is kept, so that many gaps cost one search."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._found: list[int] = []
        self._searched = 0

    def first_in(self, start: int, stop: int) -> int | None:
        """Where the first valid header stands that begins at `start` or behind it and ends by `stop`, or None."""
        last = stop - HEADER_BYTES
        while True:
            index = bisect_right(self._found, start - 1)
            if index < len(self._found):
                return self._found[index] if self._found[index] <= last else None
            begin = max(self._searched, start)
            if begin > last:
                return None
            self._searched = begin + _LOOKED_THROUGH
            self._found = _valid_headers(self._data, begin, self._searched)


def _valid_headers(data: Bytes, start: int, stop: int) -> list[int]:
    """Where valid headers of records under 4 GiB begin within `start` and `stop`."""
    words = unaligned(data, "<u4")
    stop = min(stop, len(data) - HEADER_BYTES + 1)
    # The upper half of their length is zero.
    places = start + np.flatnonzero(words[start + 4 : max(start, stop) + 4] == 0)
    lengths = words[places]
    tables, crc = _length_tables()
    crcs = np.full(places.size, crc, np.uint32)
    for index, table in enumerate(tables):
        crcs ^= table[(lengths >> np.uint32(8 * index)) & np.uint32(0xFF)]
    found: list[int] = places[_masked(crcs) == words[places + 8]].tolist()
    return found


@cache
def _length_tables() -> tuple[list[NDArray[np.uint32]], int]:
    """For each of the four lower bytes of a length what its value changes in the CRC-32C, and the CRC of length 0.

    A CRC is linear: what each byte changes adds up by exclusive or.
    """
    from crc32c import crc32c

    zero = crc32c(bytes(8))
    crcs = [[crc32c(struct.pack("<Q", byte << (8 * index))) for byte in range(256)] for index in range(4)]
    return [np.array(row, np.uint32) ^ np.uint32(zero) for row in crcs], zero


def _masked(crc: NDArray[np.uint32]) -> NDArray[np.uint32]:
    masked: NDArray[np.uint32] = ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(_MASK_DELTA)
    return masked


def unaligned(data: Bytes, dtype: str) -> NDArray[Any]:
    """A view whose element i is the value of `dtype` that starts at byte i."""
    count = max(0, len(data) - np.dtype(dtype).itemsize + 1)
    return np.ndarray((count,), dtype, buffer=data, strides=(1,))
