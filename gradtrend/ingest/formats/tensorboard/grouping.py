"""Which records of one length are alike: by the bytes that say where their fields lie, and by those of their tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gradtrend.ingest.formats.tensorboard.checksums import Offsets
from gradtrend.ingest.formats.tensorboard.layout import Layout

_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, bits well mixed (2**64 / golden ratio)
_ONE_BY_ONE = 4  # tags of one length that are picked out one after another; more are sorted

Words = list[NDArray[np.uint64]]


def masks(layout: Layout, length: int) -> tuple[list[tuple[int, np.uint64]], list[tuple[int, np.uint64]]]:
    """The 8-byte words of a record of `length` bytes, as offset and mask, that say where its fields lie, and those that
    hold its names.

    Of a varint only the continuation bits count: they say how many bytes it has.
    """
    structure = np.full(length, 0xFF, np.uint8)
    names = np.zeros(length, np.uint8)
    for start, stop in layout.ignored:
        structure[start:stop] = 0
    for start, stop in layout.names:
        structure[start:stop] = 0
        names[start:stop] = 0xFF
    if layout.time_at is not None:
        structure[layout.time_at : layout.time_at + 8] = 0
    if layout.step_at is not None:
        structure[layout.step_at : layout.step_at + layout.step_width] = 0x80
    for slot in layout.slots:
        if slot.offset is not None:
            structure[slot.offset : slot.offset + slot.width] = 0x80 if slot.varint else 0
    return _words(structure), _words(names)


def _words(mask: NDArray[np.uint8]) -> list[tuple[int, np.uint64]]:
    """A mask as the offsets and masks of few 8-byte words, those in which it has any bit."""
    words: list[tuple[int, np.uint64]] = []
    end = 0
    for place in np.flatnonzero(mask).tolist():
        if place >= end:
            offset = min(place, mask.size - 8)
            word = mask[offset : offset + 8].copy()
            word[: max(0, end - offset)] = 0
            words.append((offset, word.view("<u8")[0]))
            end = offset + 8
    return words


def alike(words: Sequence[NDArray[np.uint64]], size: int) -> Iterator[Offsets]:
    """The indices of `size` records by their words, each group in file order."""
    key = np.zeros(size, np.uint64)
    for word in words:
        key = key * _HASH_FACTOR + word
    left = np.arange(size)
    for _ in range(_ONE_BY_ONE):
        if not left.size:
            return
        same = key[left] == key[left[0]]
        for word in words:  # a hash may collide
            same &= word[left] == word[left[0]]
        yield left[same]
        left = left[~same]
    _, first, group_of = np.unique(key[left], return_index=True, return_inverse=True)
    equal = np.ones(left.size, np.bool_)
    for word in words:
        equal &= word[left] == word[left[first]][group_of]
    inside = np.flatnonzero(equal)
    by_group = inside[np.argsort(group_of[inside], kind="stable")]
    edges = np.flatnonzero(np.diff(group_of[by_group])) + 1
    yield from (left[part] for part in np.split(by_group, edges) if part.size)
    yield from (left[index : index + 1] for index in np.flatnonzero(~equal))
