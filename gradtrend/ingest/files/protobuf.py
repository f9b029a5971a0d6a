"""The few parts of the protobuf wire format that reading a log needs."""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field number and content of each field: an int for varints, else its bytes. Ends where the message is damaged."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield number, value
            continue
        if kind == _BYTES:
            length, position = _varint(message, position)
        elif kind in (_FIXED32, _FIXED64):
            length = 8 if kind == _FIXED64 else 4
        else:
            return
        if position + length > len(message):
            return
        yield number, message[position : position + length]
        position += length


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message) and shift < 70:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return value, position


def integer(message: bytes, number: int) -> int | None:
    """The varint field of that number, or None."""
    return next((value for key, value in fields(message) if key == number and isinstance(value, int)), None)


def message_time(message: bytes, number: int) -> float | None:
    """A google.protobuf.Timestamp field as seconds since the epoch, or None."""
    for key, value in fields(message):
        if key == number and isinstance(value, bytes):
            return float(integer(value, 1) or 0) + (integer(value, 2) or 0) / 1e9
    return None
