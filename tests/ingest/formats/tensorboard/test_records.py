"""Records that repeat the lengths of those before them are found as one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradtrend.ingest.formats.tensorboard import records
from gradtrend.ingest.formats.tensorboard.records import scan
from tests.ingest.formats.tensorboard.event_files import framed


def walked(data: bytes, stretch: int) -> tuple[list[tuple[int, int]], list[object]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "STRETCH", stretch)
        patch.setattr(records, "LOOKED_AT", 16)
        found = scan(data)
    assert found.end is None
    return list(zip(found.starts.tolist(), found.lengths.tolist(), strict=True)), list(found.damage)


PATTERN = st.lists(st.integers(0, 6), min_size=1, max_size=4)
FLIPS = st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), max_size=3)
BLOCKS = st.lists(st.tuples(PATTERN, st.integers(1, 12)), min_size=1, max_size=4)


@settings(max_examples=300, deadline=None)
@given(
    BLOCKS, st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), max_size=3), st.floats(0, 1), st.integers(2, 9)
)
def test_any_lengths_and_damage(
    blocks: list[tuple[list[int], int]], flips: list[tuple[float, int]], kept: float, stretch: int
) -> None:
    sizes = [size for pattern, repeats in blocks for size in pattern * repeats]
    data = bytearray(b"".join(framed(bytes([i % 251] * size)) for i, size in enumerate(sizes)))
    for place, bits in flips:
        data[int(place * (len(data) - 1))] ^= bits
    cut = bytes(data[: len(data) if kept > 0.5 else int(2 * kept * len(data))])
    assert walked(cut, stretch) == walked(cut, 1 << 30)


def test_damage_at_equal_distances_is_not_taken_for_a_pattern() -> None:
    bad = b"\xff" * 20
    data = (framed(b"abc") + bad) * 8 + framed(b"abc") + framed(b"x") + framed(b"abc")
    assert walked(data, 4) == walked(data, 1 << 30)


def test_a_long_file_is_followed_to_its_end() -> None:
    payloads = [b"loss" * 5, b"norm" * 6, b"lr" * 7] * 2000
    records = scan(b"".join(map(framed, payloads)) + framed(b"end")[:-3])
    assert records.lengths.tolist() == list(map(len, payloads))
    assert [piece.reason for piece in records.damage] == ["truncated: the file ends inside a record"]
