"""TFRecord framing: where the records of a piece of a file lie, and which of them are damaged.

A record is its length (u64, little-endian), a masked CRC-32C of these 8 bytes, the payload, and a masked CRC-32C of the
payload. The length has a checksum of its own, so a record whose payload alone is damaged is skipped and reading goes on
behind it: one flipped bit does not hide the collapse that follows. Where the length itself is damaged, the next valid
header is searched for.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from gradtrend.ingest.formats.tensorboard.checksums import (
    FRAME_BYTES,
    HEADER_BYTES,
    Bytes,
    HeaderSearch,
    Offsets,
    header_length,
    masked_crc,
    payload_checksums,
    unaligned,
)
from gradtrend.model.runlog import Skipped

SEARCH_SPAN = 1 << 20  # a torn write spoils file-system blocks (4 KiB to some 100 KiB); beyond that, give up
STRETCH = 256  # records that must repeat before more of the same are looked for: twice the tags that a program logs
LOOKED_AT = 1 << 18  # records that are compared at once, which takes some 10 MB


@dataclass(frozen=True, slots=True)
class Records:
    """The undamaged records of a piece: byte offset within it and length of each payload, in file order, and what was
    skipped, by its place in the file.

    `end` is the offset of what is still to be read, with what follows in the file; None where nothing is.
    """

    starts: Offsets
    lengths: Offsets
    damage: tuple[Skipped, ...]
    end: int | None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Records in file order: byte offset and length of each payload. `repeats` above 1 says that they lie one behind
    the other, their lengths the same ones again so many times.
    """

    starts: Offsets
    lengths: Offsets
    repeats: int = 1


def scan(data: Bytes, base: int = 0, whole: int | None = None) -> Records:
    """All records in `data`, checked: a piece from byte `base` of a file on, of which `whole` bytes are left from there
    (None: those of `data`). Never raises on damaged data.
    """
    stretches, damage, end = walk(data, base, len(data) if whole is None else whole)
    starts = np.concatenate([stretch.starts for stretch in stretches])
    lengths = np.concatenate([stretch.lengths for stretch in stretches])
    checksums = [payload_checksums(data, s.starts, s.lengths, s.repeats) for s in stretches]
    good = np.concatenate(checksums) == unaligned(data, "<u4")[starts + lengths]
    if not good.all():
        bad = (base + starts[~good] - HEADER_BYTES).tolist()
        damage += [Skipped("record fails its checksum", offset=offset) for offset in bad]
        damage.sort(key=lambda piece: piece.offset or 0)
        starts, lengths = starts[good], lengths[good]
    return Records(starts, lengths, tuple(damage), end)


def walk(data: Bytes, base: int, whole: int) -> tuple[list[Stretch], list[Skipped], int | None]:
    """The records of a piece (see `scan`), payloads unchecked, the damage found on the way, and `Records.end`."""
    stretches: list[Stretch] = []
    damage: list[Skipped] = []
    starts: list[int] = []
    lengths: list[int] = []
    search = HeaderSearch(data)
    valid: set[tuple[int, int]] = set()  # most records share a few lengths, so each header is checked only once
    position: int | None = 0
    while position is not None and position < len(data):
        before = len(starts)
        position = _run_of_records(data, position, valid, starts, lengths)
        if len(starts) - before == STRETCH:
            found, position = _repeated(data, position, np.array(lengths[before:], np.int64))
            if found:
                stretches += (_plain(starts, lengths), *found)
                starts, lengths = [], []
        elif position < len(data):
            if _waits(data, position, whole):
                break
            position = _step_over(data, position, base, search, damage)
    stretches.append(_plain(starts, lengths))
    return stretches, damage, None if position is None or position >= whole else position


def _plain(starts: list[int], lengths: list[int]) -> Stretch:
    return Stretch(np.array(starts, np.int64), np.array(lengths, np.int64))


def _run_of_records(
    data: Bytes, position: int, valid: set[tuple[int, int]], starts: list[int], lengths: list[int]
) -> int:
    """Where the records from `position` on, `STRETCH` at most, are followed by another, by a damaged one or by one that
    ends outside the data; they are added to `starts` and `lengths`, and their headers to the `valid` ones.
    """
    size = len(data)
    for _ in range(STRETCH):
        if position + HEADER_BYTES > size:
            break
        header: tuple[int, int] = struct.unpack_from("<QI", data, position)
        if header not in valid:
            if masked_crc(data[position : position + 8]) != header[1]:
                break
            valid.add(header)
        end = position + FRAME_BYTES + header[0]
        if end > size:
            break
        starts.append(position + HEADER_BYTES)
        lengths.append(header[0])
        position = end
    return position


def _repeated(data: Bytes, position: int, before: Offsets) -> tuple[list[Stretch], int]:
    """The records from `position` on that repeat the lengths of the ones before, and where they end.

    A program that logs the same tags at each step writes the same lengths again and again. Each header is compared
    with the one that it repeats, checksum and all.
    """
    period = _period_of(before)
    if period is None:
        return [], position
    sizes, checksums = unaligned(data, "<u8"), unaligned(data, "<u4")
    like = before[-period:]
    behind = np.cumsum(like + FRAME_BYTES)
    places, span = behind - like - FRAME_BYTES, int(behind[-1])
    crcs = checksums[position - span + places + 8]
    most = max(1, LOOKED_AT // period)
    found: list[Stretch] = []
    repeats, same = 1, True
    while same and (repeats := min(8 * repeats, most, (len(data) - position) // span)):
        headers = position + span * np.arange(repeats, dtype=np.int64)[:, None] + places
        equal = ((sizes[headers] == like.view(np.uint64)) & (checksums[headers + 8] == crcs)).all(axis=1)
        same = bool(equal.all())
        rows = repeats if same else int(np.argmin(equal))
        if rows:
            found.append(Stretch(headers[:rows].ravel() + HEADER_BYTES, np.tile(like, rows), rows))
        position += rows * span
    return found, position


def _period_of(lengths: Offsets) -> int | None:
    """After how many records their lengths repeat, None where they do not do so all along."""
    longest = lengths.size // 2
    return next((n for n in range(1, longest + 1) if (lengths[n:] == lengths[:-n]).all()), None)


def _waits(data: Bytes, position: int, whole: int) -> bool:
    """Whether what stands at `position`, no whole record, is to be read with more of the file."""
    if len(data) >= whole:
        return False
    length = header_length(data[position : position + HEADER_BYTES])
    if length is None:
        return position + 1 + SEARCH_SPAN > len(data)
    return position + FRAME_BYTES + length <= whole


def _step_over(data: Bytes, position: int, base: int, search: HeaderSearch, damage: list[Skipped]) -> int | None:
    """Where the next valid header stands, None if none does; the bad one at `position` is added to `damage`."""
    header = data[position : position + HEADER_BYTES]
    if len(header) < HEADER_BYTES or header_length(header) is not None:
        damage.append(Skipped("truncated: the file ends inside a record", offset=base + position))
        return None
    following = search.first_in(position + 1, min(len(data), position + 1 + SEARCH_SPAN))
    if following is None:
        damage.append(Skipped("damaged from here on", offset=base + position))
        return None
    damage.append(Skipped(f"damaged up to byte {base + following}", offset=base + position))
    return following
