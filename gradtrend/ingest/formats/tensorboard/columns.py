"""From event records to columns: records of equal structure are decoded together.

Millions of events differ only in wall time, step and value. Records of one length are taken apart by the bytes that say
where each field lies (the keys, the lengths, how many bytes the step has), then by tag; each group is parsed once and
read as whole columns. Length alone does not tell them apart: `data_time` at a step of two bytes is as long as
`batch_time` at a step of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradtrend.ingest.formats.tensorboard.blocks import Block
from gradtrend.ingest.formats.tensorboard.checksums import HEADER_BYTES, Offsets, unaligned
from gradtrend.ingest.formats.tensorboard.grouping import Words, alike, masks
from gradtrend.ingest.formats.tensorboard.layout import Layout, Slot, layout_of
from gradtrend.model.runlog import Skipped

_MIN_EVENT_BYTES = 9  # an event with a scalar has at least a summary, a value and four bytes of number
# Structures that records of one length are compared with, before each of the rest is parsed alone, which takes as long
# as a hundred comparisons: ten widths of the step, and tags that differ in length by as much.
_MOST_STRUCTURES = 64


@dataclass(frozen=True, slots=True)
class Column:
    """The values of one slot in all records of a group; `record` gives each row's record number in the file."""

    slot: Slot
    position: int
    record: Offsets
    time: NDArray[np.float64]
    step: Offsets
    value: NDArray[np.float64]


class EventDecoder:
    """Decodes the records of one block, the first of which has the number `first` in its file; `broken` gathers records
    that are no events.
    """

    def __init__(self, block: Block, first: int = 0) -> None:
        self._block = block
        self._first = first
        self._starts = block.records.starts
        self._lengths = block.records.lengths
        self.broken: list[Skipped] = []
        self._views = {dtype: unaligned(block.data, dtype) for dtype in ("<u1", "<u4", "<u8", "<f4", "<f8")}

    def columns(self) -> Iterator[Column]:
        """Every scalar of the block, in no particular order."""
        short = self._lengths.size and self._lengths.max() < 1 << 16  # then they are sorted by their digits
        order = np.argsort(self._lengths.astype(np.uint16) if short else self._lengths, kind="stable")
        edges = np.flatnonzero(np.diff(self._lengths[order])) + 1
        for rows in np.split(order, edges):
            if rows.size and self._lengths[rows[0]] >= _MIN_EVENT_BYTES:
                yield from self._decode(rows)

    def _decode(self, rows: Offsets) -> Iterator[Column]:
        """The columns of records of equal length."""
        waiting, compared = [rows], 0
        while waiting:
            rows = waiting.pop()
            compared += 1
            if compared > _MOST_STRUCTURES or rows.size < 2:
                yield from self._one_by_one(rows)
                continue
            like = self._parse(int(rows[0]))
            kin, words, others = self._kin(rows, like or Layout())
            if others.size:
                waiting.append(others)
            if like is None:  # all of the same bytes
                self.broken += [self._not_an_event(int(record)) for record in kin[1:]]
            else:
                yield from self._by_tag(kin, words, like, waiting)

    def _one_by_one(self, rows: Offsets) -> Iterator[Column]:
        """The columns of records, each parsed alone."""
        for index, record in enumerate(rows.tolist()):
            layout = self._parse(record)
            if layout is not None:
                yield from self._read(rows[index : index + 1], layout)

    def _parse(self, record: int) -> Layout | None:
        """The layout of a record, None (and a note in `broken`) where it is no event."""
        start = int(self._starts[record])
        try:
            return layout_of(bytes(self._block.data[start : start + int(self._lengths[record])]))
        except ValueError:
            self.broken.append(self._not_an_event(record))
            return None

    def _not_an_event(self, record: int) -> Skipped:
        """The note for a record whose frame is sound and whose content is no event."""
        offset = self._block.base + int(self._starts[record]) - HEADER_BYTES
        return Skipped("record is not an event", offset=offset)

    def _kin(self, rows: Offsets, like: Layout) -> tuple[Offsets, Words, Offsets]:
        """The records of equal length that have the structure of the first one, the words of their names, and the
        other records.
        """
        structure, names = masks(like, int(self._lengths[rows[0]]))
        words = self._views["<u8"]
        at = self._starts[rows]
        equal = np.ones(rows.size, np.bool_)
        for offset, mask in structure:
            word = words[at + offset]
            equal &= (word ^ word[0]) & mask == 0
        if equal.all():
            return rows, [words[at + offset] & mask for offset, mask in names], rows[:0]
        at = at[equal]
        return rows[equal], [words[at + offset] & mask for offset, mask in names], rows[~equal]

    def _by_tag(self, rows: Offsets, words: Words, like: Layout, waiting: list[Offsets]) -> Iterator[Column]:
        """The columns of records whose structure is that of `like`, the layout of the first; what turns out to have
        another one, which a tensor may hide, is added to `waiting`.
        """
        for group in alike(words, rows.size):
            records = rows[group]
            layout = like if records[0] == rows[0] else self._parse(int(records[0]))
            if layout is not None and layout.shape == like.shape:
                yield from self._read(records, layout)
            else:
                waiting.append(records[1:] if layout is None else records)

    def _read(self, rows: Offsets, layout: Layout) -> Iterator[Column]:
        """The columns of records that share one layout and one set of tags."""
        if not layout.slots:
            return
        at = self._starts[rows]
        time = np.zeros(rows.size) if layout.time_at is None else self._views["<f8"][at + layout.time_at]
        step = np.zeros(rows.size, np.uint64)
        if layout.step_at is not None:
            step = self._read_varint(at + layout.step_at, layout.step_width)
        for position, slot in enumerate(layout.slots):
            with np.errstate(invalid="ignore"):  # a NaN that signals is a NaN
                value = self._read_slot(at, slot)
            yield Column(slot, position, self._first + rows, time.astype(np.float64), step.view(np.int64), value)

    def _read_varint(self, at: Offsets, width: int) -> NDArray[np.uint64]:
        """The numbers of `width` bytes at these offsets."""
        number = np.zeros(at.size, np.uint64)
        for index in range(width):
            byte = self._views["<u1"][at + index].astype(np.uint64)
            number |= (byte & np.uint64(0x7F)) << np.uint64(7 * index)
        return number

    def _read_slot(self, at: Offsets, slot: Slot) -> NDArray[np.float64]:
        """The numbers of one slot."""
        if slot.offset is None:
            return np.zeros(at.size)
        if slot.varint:
            return _from_bits(self._read_varint(at + slot.offset, slot.varint), slot.dtype)
        dtype = "<u2" if slot.dtype == "bfloat16" else slot.dtype
        view = self._views.get(dtype)
        numbers = (unaligned(self._block.data, dtype) if view is None else view)[at + slot.offset]
        return _from_bits(numbers, slot.dtype) if slot.dtype == "bfloat16" else numbers.astype(np.float64)


def _from_bits(bits: NDArray[np.uint16] | NDArray[np.uint64], dtype: str) -> NDArray[np.float64]:
    """Numbers from integers that hold their bits: two's complement in 64 for integers, 16 for half floats."""
    if dtype == "bfloat16":
        return (bits.astype(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    if dtype == "<f2":
        return bits.astype(np.uint16).view(np.float16).astype(np.float64)
    return (bits.view(np.int64) if dtype.startswith("<i") else bits).astype(np.float64)
