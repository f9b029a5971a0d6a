"""From event records to columns: records of equal structure are decoded together.

Millions of events differ only in wall time, step and value. Records are grouped by length and by their remaining bytes;
each group is parsed once and read as whole columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradtrend.ingest.formats.tensorboard.layout import Layout, Slot, layout_of
from gradtrend.ingest.formats.tensorboard.records import HEADER_BYTES, Bytes, Offsets, Records, unaligned
from gradtrend.model.runlog import Skipped

_MIN_EVENT_BYTES = 9  # an event with a scalar has at least a summary, a value and four bytes of number
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, bits well mixed (2**64 / golden ratio)


@dataclass(frozen=True, slots=True)
class Column:
    """The values of one slot in all records of a group; `record` gives each row's record number."""

    slot: Slot
    position: int
    record: Offsets
    time: NDArray[np.float64]
    step: Offsets
    value: NDArray[np.float64]


class EventDecoder:
    """Decodes the records of one file; `broken` gathers records that are no events."""

    def __init__(self, data: Bytes, records: Records) -> None:
        self._data = data
        self._starts = records.starts
        self._lengths = records.lengths
        self.broken: list[Skipped] = []
        self._views = {dtype: unaligned(data, dtype) for dtype in ("<u1", "<u4", "<u8", "<f4", "<f8")}

    def columns(self) -> Iterator[Column]:
        """Every scalar of the file, in no particular order."""
        order = np.argsort(self._lengths, kind="stable")
        edges = np.flatnonzero(np.diff(self._lengths[order])) + 1
        for rows in np.split(order, edges):
            if rows.size and self._lengths[rows[0]] >= _MIN_EVENT_BYTES:
                first = self._parse(int(rows[0]))
                yield from self._decode(rows[1:] if first is None else rows, first)

    def _parse(self, record: int) -> Layout | None:
        """The layout of a record, None (and a note in `broken`) where it is no event."""
        start = int(self._starts[record])
        try:
            return layout_of(self._data[start : start + int(self._lengths[record])])
        except ValueError:
            self.broken.append(self._not_an_event(record))
            return None

    def _not_an_event(self, record: int) -> Skipped:
        """The note for a record whose frame is sound and whose content is no event."""
        return Skipped("record is not an event", offset=int(self._starts[record]) - HEADER_BYTES)

    def _decode(self, rows: Offsets, like: Layout | None) -> Iterator[Column]:
        """The columns of records of equal length; those that turn out to be laid out unlike `like` come last."""
        waiting = [(rows, like)]
        while waiting:
            rows, like = waiting.pop()
            if not rows.size:
                continue
            others: dict[tuple[object, ...], tuple[list[Offsets], Layout]] = {}
            for group in self._groups(rows, like or Layout()):
                layout = like if like is not None and group[0] == rows[0] else self._parse(int(group[0]))
                if layout is None and like is None:  # the whole group is the same bytes
                    self.broken += [self._not_an_event(int(record)) for record in group[1:]]
                elif layout is None:
                    waiting.append((group[1:], None))
                elif like is not None and layout.shape == like.shape:
                    yield from self._read(group, layout)
                else:
                    others.setdefault(layout.shape, ([], layout))[0].append(group)
            waiting += [(np.concatenate(parts), layout) for parts, layout in others.values()]

    def _groups(self, rows: Offsets, layout: Layout) -> Iterator[Offsets]:
        """Records of equal length by the bytes that `layout` does not take for data."""
        if rows.size == 1:
            yield rows
            return
        words = self._views["<u8"]
        spots = _fixed_words(layout, int(self._lengths[rows[0]]))
        at = self._starts[rows]
        fixed = [words[at + offset] & mask for offset, mask in spots]
        key = np.zeros(rows.size, np.uint64)
        for word in fixed:
            key = key * _HASH_FACTOR + word
        _, first, group_of = np.unique(key, return_index=True, return_inverse=True)
        equal = np.ones(rows.size, np.bool_)
        for word in fixed:  # a hash may collide
            equal &= word == word[first][group_of]
        inside = np.flatnonzero(equal)
        by_group = inside[np.argsort(group_of[inside], kind="stable")]
        edges = np.flatnonzero(np.diff(group_of[by_group])) + 1
        yield from (rows[part] for part in np.split(by_group, edges))
        yield from (rows[index : index + 1] for index in np.flatnonzero(~equal))

    def _read(self, rows: Offsets, layout: Layout) -> Iterator[Column]:
        """The columns of records that share one layout and one set of tags."""
        at = self._starts[rows]
        time = np.zeros(rows.size) if layout.time_at is None else self._views["<f8"][at + layout.time_at]
        step = self._read_varint(at, layout)
        for position, slot in enumerate(layout.slots):
            yield Column(slot, position, rows, time.astype(np.float64), step, self._read_slot(at, slot))

    def _read_varint(self, at: Offsets, layout: Layout) -> Offsets:
        """The steps; two's complement in 64 bits, as the format has it."""
        step = np.zeros(at.size, np.uint64)
        if layout.step_at is not None:
            for index in range(layout.step_width):
                byte = self._views["<u1"][at + layout.step_at + index].astype(np.uint64)
                step |= (byte & np.uint64(0x7F)) << np.uint64(7 * index)
        return step.view(np.int64)

    def _read_slot(self, at: Offsets, slot: Slot) -> NDArray[np.float64]:
        """The numbers of one slot."""
        if slot.offset is None:
            return np.full(at.size, slot.constant)
        if slot.dtype == "bfloat16":
            high = unaligned(self._data, "<u2")[at + slot.offset].astype(np.uint32) << np.uint32(16)
            return high.view(np.float32).astype(np.float64)
        view = self._views.get(slot.dtype)
        if view is None:
            view = unaligned(self._data, slot.dtype)
        return view[at + slot.offset].astype(np.float64)


def _fixed_words(layout: Layout, length: int) -> list[tuple[int, np.uint64]]:
    """Offset and mask of the 8-byte words that must agree within a group of records of `length` bytes.

    Of a step only the continuation bits count: they say how many bytes it has.
    """
    mask = np.full(length, 0xFF, np.uint8)
    for start, stop in layout.ignored:
        mask[start:stop] = 0
    if layout.time_at is not None:
        mask[layout.time_at : layout.time_at + 8] = 0
    if layout.step_at is not None:
        mask[layout.step_at : layout.step_at + layout.step_width] = 0x80
    for slot in layout.slots:
        if slot.offset is not None:
            width = 2 if slot.dtype == "bfloat16" else int(slot.dtype[2:])
            mask[slot.offset : slot.offset + width] = 0
    offsets = [*range(0, length - 8, 8), length - 8]
    words = ((offset, np.frombuffer(mask[offset : offset + 8].tobytes(), "<u8")[0]) for offset in offsets)
    return [(offset, word) for offset, word in words if word]
