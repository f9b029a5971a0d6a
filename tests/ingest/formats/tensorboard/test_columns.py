"""Records of one length that are of several tags, steps of any width, values of any kind: each comes back, in order."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

from gradtrend.ingest.formats.tensorboard import blocks, columns, grouping, records
from gradtrend.ingest.formats.tensorboard import reader as tensorboard
from gradtrend.ingest.formats.tensorboard.layout import layout_of
from tests.ingest.formats.tensorboard.event_files import (
    VERSION,
    by_tag,
    framed,
    rows_by_tbparse,
    rows_of,
    scalar_events,
    simple,
    write_events,
)
from tests.ingest.readings import long_table, read_one

numbers = st.floats(width=32, allow_subnormal=True)
# Names of lengths that differ by little and steps of one to six bytes: records of one length are of several tags.
LIGHTLY_TRAIN = ("train_loss", "batch_time", "data_time", "gradient_norm", "learning_rate")
names = st.one_of(
    st.sampled_from(LIGHTLY_TRAIN), st.integers(1, 12).map("t".ljust), st.integers(125, 131).map("t".ljust)
)
wide_steps = st.integers(0, 40).flatmap(lambda bits: st.integers((1 << bits) >> 1, 1 << bits))
logged = st.tuples(names, wide_steps, numbers, st.floats(0, 2e9))


@settings(max_examples=120, deadline=None)
@given(st.lists(logged, max_size=40), st.data())
def test_equals_tbparse_up_to_damage_and_protobuf_behind_it(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, int, float, float]], data: st.DataObject
) -> None:
    records = [framed(event.SerializeToString()) for event in (VERSION, *scalar_events(drawn))]
    hit = data.draw(st.none() | st.integers(1, len(drawn))) if drawn else None
    if hit is not None:
        place = data.draw(st.integers(0, len(records[hit]) - 1))
        spoilt = bytes([records[hit][place] ^ data.draw(st.integers(1, 255))])
        records[hit] = records[hit][:place] + spoilt + records[hit][place + 1 :]
    whole = b"".join(records)
    kept = data.draw(st.one_of(st.just(len(whole)), st.integers(len(records[0]), len(whole))))
    path = tmp_path_factory.mktemp("tb") / "events.out.tfevents.1"
    path.write_bytes(whole[:kept])
    ends = list(itertools.accumulate(map(len, records)))
    left = [row for i, row in enumerate(drawn, start=1) if i != hit and ends[i] <= kept]
    before = [row for i, row in enumerate(drawn, start=1) if ends[i] <= kept and (hit is None or i < hit)]
    found = rows_of(read_one(tensorboard.read, path))
    assert found == by_tag((tag, step, repr(value), time) for tag, step, value, time in left)
    by_tbparse = sorted(rows_by_tbparse(path))
    assert by_tbparse == sorted((tag, step, repr(value), time) for tag, step, value, time in before)
    assert not set(by_tbparse) - set(found)


@pytest.mark.parametrize("every", [1, 50, 20_000, 1 << 27])
def test_records_of_one_length_are_parsed_once_a_structure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    rows = [(tag, row * every, float(row), 9.0 + row) for row in range(2000) for tag in LIGHTLY_TRAIN]
    path = write_events(tmp_path / "events.out.tfevents.1", [VERSION, *scalar_events(rows)])
    parsed: list[int] = []
    monkeypatch.setattr(columns, "layout_of", lambda data: parsed.append(1) or layout_of(data))
    reading = read_one(tensorboard.read, path)
    assert rows_of(reading) == by_tag((tag, step, repr(value), time) for tag, step, value, time in rows)
    assert len(parsed) <= 2 + 7 * len(LIGHTLY_TRAIN)  # a step has none to six bytes


def test_values_of_other_kinds_in_records_of_one_length(tmp_path: Path) -> None:
    """Merged summaries whose tags share their bytes otherwise, and integers of any width, in one file."""
    rng = np.random.default_rng(3)
    events, expected = [], []
    for step in range(1, 400):
        split, count = int(rng.integers(1, 9)), int(rng.integers(0, 1 << int(rng.integers(1, 62))))
        pair = [("a" * split, float(step)), ("b" * (10 - split), float(-step))]
        values = [simple(tag, value) for tag, value in pair]
        events.append(Event(wall_time=1.0, step=step, summary=Summary(value=values)))
        tensor = TensorProto(dtype="DT_INT64", tensor_shape=TensorShapeProto(), int64_val=[count])
        events.append(Event(wall_time=1.0, step=step, summary=Summary(value=[Summary.Value(tag="n", tensor=tensor)])))
        expected += [(tag, step, repr(value), 1.0) for tag, value in [*pair, ("n", float(count))]]
    reading = read_one(tensorboard.read, write_events(tmp_path / "events.out.tfevents.1", [VERSION, *events]))
    assert rows_of(reading) == by_tag(expected)


def test_more_structures_than_are_compared(tmp_path: Path) -> None:
    cuts = [(i, j) for i in range(1, 14) for j in range(1, 14)]
    events, expected = [], []
    for step, (i, j) in enumerate(cuts * 3, start=1):
        parts = [("a" * i, 1.0 * step), ("b" * j, 2.0 * step), ("c" * (30 - i - j), 3.0 * step)]
        values = [simple(tag, value) for tag, value in parts]
        events.append(Event(wall_time=1.0, step=1 + step % 100, summary=Summary(value=values)))
        expected += [(tag, 1 + step % 100, repr(value), 1.0) for tag, value in parts]
    reading = read_one(tensorboard.read, write_events(tmp_path / "events.out.tfevents.1", [VERSION, *events]))
    assert rows_of(reading) == by_tag(expected)


def test_tags_of_one_length_beyond_those_picked_out_one_by_one(tmp_path: Path) -> None:
    rows = [(f"layer{i:03}", step, float(i * step), 2.0) for step in range(300) for i in range(40)]
    path = write_events(tmp_path / "events.out.tfevents.1", [VERSION, *scalar_events(rows)])
    expected = by_tag((tag, step, repr(value), time) for tag, step, value, time in rows)
    assert rows_of(read_one(tensorboard.read, path)) == expected
    with pytest.MonkeyPatch.context() as patch:  # hashes that all collide
        patch.setattr(grouping, "_HASH_FACTOR", np.uint64(0))
        assert rows_of(read_one(tensorboard.read, path)) == expected


def test_a_text_in_a_record_as_long_as_a_scalars_hides_it_not(tmp_path: Path) -> None:
    text = TensorProto(dtype="DT_STRING", tensor_shape=TensorShapeProto(), string_val=[b"four"])
    scalar = TensorProto(dtype="DT_FLOAT", tensor_shape=TensorShapeProto(), tensor_content=np.float32(1.5).tobytes())
    values = [Summary.Value(tag=tag, tensor=tensor) for tag, tensor in (("note", text), ("loss", scalar))] * 3
    events = [Event(wall_time=1.0, step=7, summary=Summary(value=[value])) for value in values]
    assert len({len(event.SerializeToString()) for event in events}) == 1
    reading = read_one(tensorboard.read, write_events(tmp_path / "events.out.tfevents.1", [VERSION, *events]))
    assert rows_of(reading) == [("loss", 7, "1.5", 1.0)] * 3


def test_what_is_said_of_a_tag_may_be_broken(tmp_path: Path) -> None:
    def with_metadata(tag: bytes, metadata: bytes) -> bytes:
        value = b"\x0a\x01" + tag + b"\x15\0\0\x80?" + b"\x4a" + bytes([len(metadata)]) + metadata
        return framed(b"\x10\x05\x2a" + bytes([len(value) + 2]) + b"\x0a" + bytes([len(value)]) + value)

    sound, broken = with_metadata(b"a", b"\x12\x02xy"), with_metadata(b"b", b"\x0a\x02\x0a\x7f")
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(framed(VERSION.SerializeToString()) + sound + broken + sound + broken)
    reading = read_one(tensorboard.read, path)
    assert rows_of(reading) == [("a", 5, "1.0", 0.0)] * 2
    assert [piece.reason for piece in reading.skipped] == ["record is not an event"] * 2


@pytest.mark.filterwarnings("error")
def test_a_nan_that_signals_is_a_nan_without_a_warning(tmp_path: Path) -> None:
    record = scalar_events([("x", 1, 1.0, 2.0)])[0].SerializeToString()
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(framed(record[:-4] + (0x7FA00001).to_bytes(4, "little")) * 2)
    assert rows_of(read_one(tensorboard.read, path)) == [("x", 1, "nan", 2.0)] * 2


def test_tags_come_in_the_order_of_their_first_events(tmp_path: Path) -> None:
    order = ["m/three", "m/one", "loss", "m/seven", "m/two", "norm", "a", "epoch", "m/eight"]
    rows = [(tag, 9 + step, 1.0, 2.0) for step in range(300) for tag in (order if step > 4 else order[:1])]
    path = write_events(tmp_path / "events.out.tfevents.1", [VERSION, *scalar_events(rows)])
    assert list(read_one(tensorboard.read, path).series) == order


def test_a_file_cut_while_it_is_read_gives_what_it_still_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_events(
        tmp_path / "events.out.tfevents.1", [VERSION, *scalar_events(("x", s, 1.0, 2.0) for s in range(900))]
    )
    monkeypatch.setattr(records, "SEARCH_SPAN", 100)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4096)
    scan = blocks.scan

    def cutting(data: memoryview, base: int, whole: int) -> records.Records:
        os.truncate(path, 5000)
        return scan(data, base, whole)

    monkeypatch.setattr(blocks, "scan", cutting)
    reading = read_one(tensorboard.read, path)
    assert long_table(reading)["step"].to_list() == list(range(long_table(reading).height))
    assert 90 < long_table(reading).height < 150
    assert [piece.reason for piece in reading.skipped][-1] == "the file was cut while it was read"


def test_the_first_pieces_of_much_damage_are_kept_and_all_counted(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    good = framed(scalar_events([("x", 1, 1.0, 2.0)])[0].SerializeToString())
    path.write_bytes((good + b"\xff") * 500)
    reading = read_one(tensorboard.read, path)
    assert long_table(reading).height == 500
    assert reading.skipped_count == 500
    assert [piece.offset for piece in reading.skipped] == [(i + 1) * (len(good) + 1) - 1 for i in range(100)]
