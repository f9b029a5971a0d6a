"""Mutated binary logs: protobuf messages within the records of TensorBoard and of Weights & Biases, checksums right."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Sequence

import crc32c

from tests.fuzz.values import FLOATS, INTEGERS, NAMES, bent_bytes, encoded, reordered

_Field = tuple[int, int, bytes]  # number, wire type, content without its length
_BROKEN = (b"\x80", b"\xff" * 9, b"\xff" * 10 + b"\x01", b"\x80" * 11, b"\xff\xff\xff\xff\x0f", b"\x80\x00", b"")
_BLOCK, _HEAD, _CHUNK_HEAD = 32 * 1024, 7, 7


def _varint(number: int) -> bytes:
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80 or shift > 63:
            return value, at


def _fields(data: bytes) -> list[_Field] | None:
    """The fields of a message; None where the bytes are none."""
    found: list[_Field] = []
    at = 0
    try:
        while at < len(data):
            key, at = _read_varint(data, at)
            number, wire = key >> 3, key & 7
            if wire == 0:
                begin = at
                at = _read_varint(data, at)[1]
            elif wire == 2:
                length, begin = _read_varint(data, at)
                at = begin + length
            elif wire in (1, 5):
                begin, at = at, at + (8 if wire == 1 else 4)
            else:
                return None
            if at > len(data) or not number:
                return None
            found.append((number, wire, data[begin:at]))
    except IndexError:
        return None
    return found


def _written(fields: Sequence[_Field], chance: random.Random) -> bytes:
    out = bytearray()
    for number, wire, content in fields:
        out += _varint(number << 3 | wire)
        if wire == 2:
            wrong = chance.random() < 0.02
            out += chance.choice(_BROKEN) if wrong else _varint(len(content))
        out += content
    return bytes(out)


def bent_message(data: bytes, chance: random.Random, depth: int = 0) -> bytes:
    """A protobuf message with a field, at any depth, changed in value, type, number or place; else as bytes."""
    fields = _fields(data)
    if not fields:
        return _bent_content(data, chance)
    at = chance.randrange(len(fields))
    number, wire, content = fields[at]
    match chance.randrange(9):
        case 0:
            reordered(fields, [fields[at]], chance)
        case 1:
            fields[at] = (chance.choice((0, 1, 2, 3, number + 1, 8, 2**28)), wire, content)
        case 2:
            fields[at] = (number, chance.choice((0, 1, 2, 3, 5, 7)), content)
        case 3:
            fields[at] = (number, wire, chance.choice(_BROKEN))
        case _ if wire == 2 and depth < 8:
            fields[at] = (number, wire, bent_message(content, chance, depth + 1))
        case _:
            fields[at] = (number, wire, _bent_scalar(wire, content, chance))
    return _written(fields[:3000], chance)


def _bent_scalar(wire: int, content: bytes, chance: random.Random) -> bytes:
    if wire == 0:
        return _varint(chance.choice(INTEGERS))
    if wire == 1:
        return struct.pack("<d", chance.choice(FLOATS)) if chance.random() < 0.8 else chance.randbytes(8)
    if wire == 5:
        number = chance.choice(FLOATS)
        return struct.pack("<f", number if abs(number) < 3e38 or number != number else float("inf"))
    return _bent_content(content, chance)


def _bent_content(data: bytes, chance: random.Random) -> bytes:
    match chance.randrange(5):
        case 0:
            return encoded(chance.choice(NAMES))
        case 1:
            return encoded(repr(chance.choice(FLOATS)).replace("nan", "NaN").replace("inf", "Infinity"))
        case 2:
            return data * chance.choice((0, 2, 30))
        case _:
            return bent_bytes(data, chance)


def _masked(data: bytes) -> int:
    crc = crc32c.crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def event_records(data: bytes) -> list[bytes]:
    """The payloads of an event file."""
    found, at = [], 0
    while at + 12 <= len(data):
        length = struct.unpack_from("<Q", data, at)[0]
        found.append(data[at + 12 : at + 12 + length])
        at += 16 + length
    return found


def event_file(records: Sequence[bytes], chance: random.Random) -> bytes:
    """An event file of these payloads with right checksums; now and then a length that is wrong, with a right one."""
    out = bytearray()
    for record in records:
        wrong = chance.random() < 0.004
        length = chance.choice((len(record) + 1, len(record) - 1, 0, 2**31, 2**63, 2**64 - 1)) if wrong else len(record)
        head = struct.pack("<Q", length % 2**64)
        out += head + struct.pack("<I", _masked(head)) + record + struct.pack("<I", _masked(record))
        if chance.random() < 0.003:
            out += chance.randbytes(chance.choice((1, 11, 200)))
    return bytes(out)


def chunk_records(data: bytes) -> list[bytes]:
    """The records of a log of Weights & Biases."""
    found: list[bytes] = []
    parts, at = b"", _HEAD
    while at + _CHUNK_HEAD <= len(data):
        if _BLOCK - at % _BLOCK < _CHUNK_HEAD:
            at += _BLOCK - at % _BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            found.append(parts)
            parts = b""
    return found


def chunk_file(records: Sequence[bytes], chance: random.Random, head: bytes) -> bytes:
    """A log of Weights & Biases of these records, checksums right; now and then a wrong length or type, many parts."""
    out = bytearray(head[:_HEAD])
    for record in records:
        left, first = record, True
        while first or left:
            room = _BLOCK - len(out) % _BLOCK
            if room < _CHUNK_HEAD:
                out += bytes(room)
                room = _BLOCK
            most = room - _CHUNK_HEAD if chance.random() > 0.01 else min(room - _CHUNK_HEAD, chance.choice((0, 1, 9)))
            part, left = left[:most], left[most:]
            kind = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}[first, not left]
            kind = chance.randrange(256) if chance.random() < 0.003 else kind
            length = chance.choice((0, 65535, len(part) + 1)) if chance.random() < 0.002 else len(part)
            out += struct.pack("<IHB", zlib.crc32(part, zlib.crc32(bytes([kind]))), length, kind) + part
            first = False
            if not most and chance.random() < 0.5:  # an empty part; the next one is larger
                continue
    return bytes(out)


def mutated_records(
    seeds: Sequence[bytes], chance: random.Random, parse: Callable[[bytes], list[bytes]]
) -> list[bytes]:
    """The records of a seed, moved, spliced with those of another and bent as messages."""
    records, others = (parse(chance.choice(seeds))[:400] for _ in range(2))
    for _ in range(chance.choice((1, 2, 4, 10))):
        if chance.random() < 0.25 or not records:
            reordered(records, others, chance)
            continue
        first = chance.randrange(len(records))
        state = chance.getrandbits(32)  # the same change to many records: a writer that does it all along
        for at in range(first, min(len(records), first + chance.choice((1, 1, 3, 400)))):
            records[at] = bent_message(records[at], random.Random(state) if chance.random() < 0.9 else chance)
    return records[:3000]
