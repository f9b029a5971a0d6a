"""A file read in blocks gives what it gives as a whole, and one that shrinks meanwhile what it still holds."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradtrend.errors import InputError
from gradtrend.ingest.formats.tensorboard import blocks as reading_blocks
from gradtrend.ingest.formats.tensorboard import checksums, records
from gradtrend.ingest.formats.tensorboard.blocks import blocks
from gradtrend.ingest.formats.tensorboard.checksums import FRAME_BYTES, HEADER_BYTES, header_length, masked_crc
from gradtrend.ingest.formats.tensorboard.records import scan
from gradtrend.model.runlog import Skipped
from tests.ingest.formats.tensorboard.event_files import framed


@contextmanager
def small_blocks(size: int, largest: int = 1 << 20) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading_blocks, "BLOCK_BYTES", size)
        patch.setattr(reading_blocks, "LARGEST_RECORD", largest)
        patch.setattr(records, "SEARCH_SPAN", 50)
        patch.setattr(records, "STRETCH", 6)
        yield


def in_blocks(path: Path) -> tuple[list[bytes], list[Skipped]]:
    payloads, damage = [], []
    for block in blocks(path):
        found = block.records
        payloads += [bytes(block.data[a : a + n]) for a, n in zip(found.starts, found.lengths, strict=True)]
        damage += found.damage
    return payloads, damage


PAYLOADS = st.lists(st.integers(0, 80), max_size=40)
DAMAGE = st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=70)), max_size=4)


@settings(max_examples=300, deadline=None)
@given(PAYLOADS, st.integers(1, 3), DAMAGE, st.floats(0, 1), st.integers(64, 400))
def test_blocks_of_any_size_give_what_the_whole_gives(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    repeats: int,
    damage: list[tuple[float, bytes]],
    kept: float,
    block: int,
) -> None:
    data = bytearray(b"".join(framed(bytes([i % 251] * size)) for i, size in enumerate(sizes * repeats)))
    for place, spoilt in damage:
        start = int(place * len(data))
        data[start : start + len(spoilt)] = spoilt
    content = bytes(data[: len(data) if kept > 0.5 else int(2 * kept * len(data))])
    path = tmp_path_factory.mktemp("blocks") / "events.out.tfevents.1"
    path.write_bytes(content)
    with small_blocks(block):
        whole = scan(content)
        payloads, skipped = in_blocks(path)
    starts = zip(whole.starts.tolist(), whole.lengths.tolist(), strict=True)
    assert payloads == [content[start : start + length] for start, length in starts]
    assert sorted(skipped, key=repr) == sorted(whole.damage, key=repr)


def test_a_record_larger_than_a_block_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    payloads = [b"a" * 10, b"b" * 1000, b"c" * 10, b"d" * 3000, b"e"]
    path.write_bytes(b"".join(map(framed, payloads)))
    with small_blocks(64):
        assert in_blocks(path) == (payloads, [])


def test_a_record_too_large_for_memory_is_passed_over_and_said(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    payloads = [b"a" * 10, b"b" * 5000, b"c" * 10]
    path.write_bytes(b"".join(map(framed, payloads)))
    with small_blocks(64, largest=4000):
        assert in_blocks(path) == ([b"a" * 10, b"c" * 10], [Skipped("a record of 5,000 bytes", offset=26)])


def test_a_length_that_reaches_beyond_the_file_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    length = struct.pack("<Q", 1 << 40)
    path.write_bytes(framed(b"a") + length + struct.pack("<I", masked_crc(length)) + bytes(500))
    with small_blocks(64):
        payloads, damage = in_blocks(path)
    assert payloads == [b"a"]
    assert damage == [Skipped("truncated: the file ends inside a record", offset=FRAME_BYTES + 1)]


@pytest.mark.parametrize("kept", [0, 26 * 3, 26 * 3 + 5, 26 * 50, 26 * 50 + 13])
def test_a_file_cut_while_it_is_read_ends_early_and_says_so(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(framed(b"0123456789") * 200)
    with small_blocks(260):
        found = blocks(path)
        first = next(found)
        assert first.records.starts.size == 10
        os.truncate(path, kept)
        rest = list(found)
    assert sum(block.records.starts.size for block in rest) == max(0, kept // 26 - 10)
    assert rest[-1].records.damage[-1] == Skipped("the file was cut while it was read", offset=max(kept, 260))


def test_what_is_written_meanwhile_is_left_for_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(framed(b"0123456789") * 20)
    with small_blocks(260):
        found = blocks(path)
        next(found)
        with path.open("ab") as file:
            file.write(framed(b"more") * 3)
        assert [block.records.starts.size for block in found] == [10]


def test_a_pipe_in_the_place_of_the_file_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    os.mkfifo(path)
    with pytest.raises(InputError, match="not a regular file"):
        next(blocks(path))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=30), st.binary(max_size=20).map(framed)), max_size=12), st.data())
def test_the_search_finds_what_a_look_at_each_byte_finds(pieces: list[bytes], drawn: st.DataObject) -> None:
    data = b"".join(pieces)
    lengths = [header_length(data[i : i + HEADER_BYTES]) for i in range(len(data))]
    valid = [i for i, length in enumerate(lengths) if length is not None and length < 1 << 32]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checksums, "_LOOKED_THROUGH", 16)
        search = checksums.HeaderSearch(data)
        start = 0
        for _ in range(5):
            start = drawn.draw(st.integers(start, len(data)))
            stop = drawn.draw(st.integers(start, len(data)))
            expected = next((i for i in valid if start <= i <= stop - HEADER_BYTES), None)
            assert search.first_in(start, stop) == expected


def test_a_file_full_of_gaps_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[tuple[int, int]] = []
    search = checksums._valid_headers

    def counted(data: checksums.Bytes, start: int, stop: int) -> list[int]:
        looked.append((start, stop))
        return search(data, start, stop)

    monkeypatch.setattr(checksums, "_valid_headers", counted)
    data = (b"\xff" + framed(b"")) * 20_000
    found = scan(data)
    assert found.starts.size == 20_000
    assert len(found.damage) == 20_000
    assert all(before[1] <= after[0] for before, after in pairwise(looked))
