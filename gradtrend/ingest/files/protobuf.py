"""The few parts of the protobuf wire format that reading a log needs.

`fields` says where the fields of a message lie and raises ValueError at damage. `whole_fields` gives their contents and
ends there instead, for records of which every field counts on its own.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5  # wire types
_MAX_VARINT_BYTES = 10


def varint(data: bytes, position: int) -> tuple[int, int]:
    """The unsigned number at `position` and the position behind it. Raises ValueError where it is broken."""
    if position < len(data) and data[position] < 0x80:  # nearly all keys and lengths are of one byte
        return data[position], position + 1
    value = 0
    for index, byte in enumerate(data[position : position + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position + index + 1
    raise ValueError("broken number")


def fields(data: bytes, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Field number, wire type, start and stop of the content of each field of a message.

    Raises ValueError where the message is damaged, when the fields before the damage have been given.
    """
    while position < end:
        key, position = varint(data, position)
        wire = key & 7
        if wire == VARINT:
            stop = varint(data, position)[1]
        elif wire == DELIMITED:
            length, position = varint(data, position)
            stop = position + length
        elif wire in (FIXED64, FIXED32):
            stop = position + (8 if wire == FIXED64 else 4)
        else:
            raise ValueError("unknown wire type")
        if stop > end:
            raise ValueError("field longer than its message")
        yield key >> 3, wire, position, stop
        position = stop


def whole_fields(message: bytes) -> list[tuple[int, int | bytes]]:
    """Field number and content of each field before the damage, if there is any: an int for varints, else its bytes."""
    found: list[tuple[int, int | bytes]] = []
    try:
        for number, wire, start, stop in fields(message, 0, len(message)):
            found.append((number, varint(message, start)[0] if wire == VARINT else message[start:stop]))
    except ValueError:
        return found
    return found


def integer(message: bytes, number: int) -> int | None:
    """The varint field of that number, or None."""
    return next((value for key, value in whole_fields(message) if key == number and isinstance(value, int)), None)


def message_time(message: bytes, number: int) -> float | None:
    """A google.protobuf.Timestamp field as seconds since the epoch, or None."""
    for key, value in whole_fields(message):
        if key == number and isinstance(value, bytes):
            return float(integer(value, 1) or 0) + (integer(value, 2) or 0) / 1e9
    return None
