"""Event files: equal to TensorBoard's own reader on sound files, a clean prefix on damaged ones."""

from __future__ import annotations

import itertools
import math
import struct
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.util import tensor_util

from gradtrend.errors import InputError
from gradtrend.ingest.formats.tensorboard import reader as tensorboard
from gradtrend.ingest.formats.tensorboard.checksums import FRAME_BYTES, HEADER_BYTES
from tests.ingest.formats.tensorboard.event_files import (
    VERSION,
    by_tag,
    framed,
    rows_by_tbparse,
    rows_of,
    rows_of_events,
    simple,
    write_events,
)
from tests.ingest.readings import long_table, read_one
from tests.places import RUNS

EVENT_FILES = sorted(RUNS.rglob("events.out.tfevents.*"))
SMALL = RUNS / "tensorboard" / "tensorboardx"


@pytest.mark.parametrize("path", EVENT_FILES, ids=lambda path: path.parent.name)
def test_equals_tbparse_on_real_files(path: Path) -> None:
    reading = read_one(tensorboard.read, path)
    assert sorted(rows_of(reading)) == sorted(rows_by_tbparse(path))
    assert reading.skipped_count == 0
    assert reading.started is not None


def test_fixtures_hold_every_kind_of_writer() -> None:
    kinds = {path.parent.name for path in EVENT_FILES}
    assert kinds >= {"torch", "torch_new_style", "tensorboardx", "tensorflow_style", "exploding_lr_nan"}


@pytest.mark.parametrize(
    ("folder", "metric", "digits"),
    [
        ("torch", "train/grad_norm", 7),
        ("torch_new_style", "train/grad_norm", 7),
        ("tensorboardx", "grad_norm", 7),
        ("tensorflow_style", "global_norm", 7),
    ],
)
def test_all_points_with_nan_and_inf_in_order(folder: str, metric: str, digits: int) -> None:
    (path,) = (RUNS / "tensorboard" / folder).iterdir()
    reading = read_one(tensorboard.read, path)
    norm = long_table(reading).filter(pl.col("metric") == metric)
    assert norm["step"].to_list() == list(range(40))
    assert norm["value"][38] == math.inf
    assert math.isnan(norm["value"][39])
    assert norm["time"][5] == 1_700_000_005.0
    assert reading.digits == digits


numbers = st.floats(width=32, allow_subnormal=True)
steps = st.one_of(st.integers(0, 300), st.integers(-(2**63), 2**63 - 1))
tags = st.text(min_size=1, max_size=20)


@st.composite
def events(draw: st.DrawFn) -> Event:
    values = [
        draw(
            st.one_of(
                st.builds(simple, tags, numbers),
                st.builds(
                    lambda tag, data: Summary.Value(tag=tag, histo=HistogramProto(min=0, bucket=data)),
                    tags,
                    st.lists(st.floats(0, 1), max_size=4),
                ),
            )
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    return Event(wall_time=draw(st.floats(0, 2e9)), step=draw(steps), summary=Summary(value=values))


@settings(max_examples=150, deadline=None)
@given(st.lists(events(), max_size=30))
def test_equals_protobuf_on_generated_files(tmp_path_factory: pytest.TempPathFactory, drawn: list[Event]) -> None:
    path = write_events(tmp_path_factory.mktemp("tb") / "events.out.tfevents.1", [VERSION, *drawn])
    reading = read_one(tensorboard.read, path)
    assert rows_of(reading) == by_tag(rows_of_events(drawn))
    assert reading.started == 1.5
    assert reading.skipped_count == 0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), numbers), min_size=1, max_size=20))
def test_equals_tbparse_on_generated_files(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, float]]
) -> None:
    path = tmp_path_factory.mktemp("tb") / "events.out.tfevents.1"
    events = [
        Event(wall_time=2.0 + step, step=step, summary=Summary(value=[simple(tag, value)]))
        for step, (tag, value) in enumerate(drawn)
    ]
    write_events(path, [VERSION, *events])
    assert sorted(rows_of(read_one(tensorboard.read, path))) == sorted(rows_by_tbparse(path))


@pytest.mark.parametrize(
    ("dtype", "value", "digits"),
    [
        ("float16", 1.5, 3),
        ("float32", 0.1, 7),
        ("float64", 0.1, 17),
        ("int8", -3, 17),
        ("int16", -300, 17),
        ("int32", -70000, 17),
        ("int64", -(2**40), 17),
        ("uint8", 200, 17),
        ("bool", 1, 17),
    ],
)
@pytest.mark.parametrize("as_content", [True, False])
def test_tensor_types(tmp_path: Path, dtype: str, value: float, digits: int, as_content: bool) -> None:
    array = np.array(value, dtype)
    tensor = tensor_util.make_tensor_proto(array)
    if as_content:
        enum = tensor.dtype
        tensor = TensorProto(dtype=enum, tensor_shape=TensorShapeProto(), tensor_content=array.tobytes())
    event = Event(wall_time=1.0, step=4, summary=Summary(value=[Summary.Value(tag="x", tensor=tensor)]))
    reading = read_one(tensorboard.read, write_events(tmp_path / "events.out.tfevents.1", [VERSION, event, event]))
    assert long_table(reading)["value"].to_list() == [float(array)] * 2
    assert reading.digits == digits


@pytest.mark.parametrize("in_content", [True, False])
def test_bfloat16(tmp_path: Path, in_content: bool) -> None:
    bits = struct.unpack("<I", struct.pack("<f", -2.5))[0] >> 16
    tensor = TensorProto(dtype="DT_BFLOAT16", tensor_shape=TensorShapeProto())
    if in_content:
        tensor.tensor_content = struct.pack("<H", bits)
    else:
        tensor.half_val.append(bits)
    event = Event(wall_time=1.0, step=4, summary=Summary(value=[Summary.Value(tag="x", tensor=tensor)]))
    path = write_events(tmp_path / "e.tfevents", [VERSION, event])
    assert long_table(read_one(tensorboard.read, path))["value"].to_list() == [-2.5]


def test_tensors_that_are_no_scalars_are_left_out(tmp_path: Path) -> None:
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="histograms"))
    one = tensor_util.make_tensor_proto(np.ones(1, "float32"))
    values = [
        Summary.Value(tag="histogram", tensor=one, metadata=metadata),
        Summary.Value(tag="vector", tensor=tensor_util.make_tensor_proto(np.ones(3, "float32"))),
        Summary.Value(tag="text", tensor=tensor_util.make_tensor_proto("text")),
        Summary.Value(tag="loss", tensor=one),
    ]
    later = Event(wall_time=3.0, step=1, summary=Summary(value=[Summary.Value(tag="histogram", tensor=one)]))
    first = Event(wall_time=2.0, step=0, summary=Summary(value=values))
    reading = read_one(tensorboard.read, write_events(tmp_path / "e.tfevents", [VERSION, first, later]))
    assert long_table(reading)["metric"].to_list() == ["loss"]


def small_file() -> bytes:
    (path,) = SMALL.iterdir()
    return path.read_bytes()


def boundaries(data: bytes) -> list[int]:
    ends, position = [0], 0
    while position < len(data):
        position += FRAME_BYTES + struct.unpack_from("<Q", data, position)[0]
        ends.append(position)
    return ends


def events_in(data: bytes) -> list[Event]:
    return [Event.FromString(data[a + HEADER_BYTES : b - 4]) for a, b in itertools.pairwise(boundaries(data))]


def test_cut_at_every_byte_keeps_the_prefix(tmp_path: Path) -> None:
    data = small_file()[:700]
    ends = boundaries(small_file())
    whole = rows_of_events(events_in(small_file()))
    path = tmp_path / "events.out.tfevents.1"
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        reading = read_one(tensorboard.read, path)
        complete = max(index for index, end in enumerate(ends) if end <= cut)
        assert rows_of(reading) == by_tag(whole[: max(0, complete - 1)])
        if cut in ends:
            assert reading.skipped == ()
        else:
            assert [(piece.offset, "truncated" in piece.reason) for piece in reading.skipped] == [
                (ends[complete], True)
            ]


def test_a_flipped_byte_anywhere_loses_one_record_and_is_reported(tmp_path: Path) -> None:
    data = small_file()[: boundaries(small_file())[9]]
    ends = boundaries(data)
    whole = rows_of_events(events_in(small_file()))[:8]
    path = tmp_path / "events.out.tfevents.1"
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x5A]) + data[place + 1 :])
        reading = read_one(tensorboard.read, path)
        hit = max(index for index, end in enumerate(ends) if end <= place)
        lost = [] if hit == 0 else [whole[hit - 1]]
        assert rows_of(reading) == by_tag(row for row in whole if row not in lost)
        assert [piece.offset for piece in reading.skipped] == [ends[hit]]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_damage_raises_anything_but_input_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(small_file())
    for _ in range(data.draw(st.integers(1, 5))):
        start = data.draw(st.integers(0, len(content) - 1))
        content[start : start + data.draw(st.integers(1, 200))] = data.draw(st.binary(max_size=200))
        content = content or bytearray(b"x")
    path = tmp_path_factory.mktemp("tb") / "events.out.tfevents.1"
    path.write_bytes(content)
    try:
        reading = read_one(tensorboard.read, path)
    except InputError:
        return
    assert reading.skipped_count >= 0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=8))
def test_sound_records_that_are_no_events(tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("tb") / "events.out.tfevents.1"
    good = Event(wall_time=2.0, step=3, summary=Summary(value=[simple("loss", 1.0)])).SerializeToString()
    path.write_bytes(b"".join(framed(payload) for payload in [*payloads, *payloads, good]))
    assert rows_of(read_one(tensorboard.read, path))[-1] == ("loss", 3, "1.0", 2.0)


def test_zeros_behind_the_end_are_reported_and_the_rest_is_used(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(small_file() + bytes(4096))
    reading = read_one(tensorboard.read, path)
    assert long_table(reading).height == 80
    assert [piece.offset for piece in reading.skipped] == [len(small_file())]


def test_empty_and_header_only_files_hold_nothing(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(b"")
    assert long_table(read_one(tensorboard.read, path)).height == 0
    write_events(path, [VERSION])
    assert long_table(read_one(tensorboard.read, path)).height == 0
    assert read_one(tensorboard.read, path).started == 1.5


def test_garbage_named_like_an_event_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(np.random.default_rng(0).bytes(5000))
    with pytest.raises(InputError, match="no readable TensorBoard record"):
        read_one(tensorboard.read, path)


def test_a_folder_named_like_an_event_file_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "events.out.tfevents.1"
    folder.mkdir()
    assert not tensorboard.claims(folder, b"")
    with pytest.raises(InputError, match="cannot read"):
        read_one(tensorboard.read, folder)


def test_claims_by_content_then_by_name(tmp_path: Path) -> None:
    claims = tensorboard.claims
    content = framed(VERSION.SerializeToString())
    assert claims(tmp_path / "renamed.bin", content)
    assert claims(tmp_path / "events.out.tfevents.1.host", b"")
    assert not claims(tmp_path / "dataset.tfrecord", framed(b"an example"))
    assert not claims(tmp_path / "metrics.jsonl", b'{"loss": 1}')


def test_reading_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(small_file())
    before = path.stat().st_mtime_ns
    read_one(tensorboard.read, path)
    assert path.read_bytes() == small_file()
    assert path.stat().st_mtime_ns == before
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_many_tags_and_step_widths_come_back_in_file_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    rows = [(f"layer{rng.integers(30)}", int(rng.integers(0, 2**21)), float(rng.integers(1000))) for _ in range(3000)]
    events = [Event(wall_time=9.0, step=step, summary=Summary(value=[simple(tag, x)])) for tag, step, x in rows]
    reading = read_one(tensorboard.read, write_events(tmp_path / "events.out.tfevents.1", [VERSION, *events]))
    assert rows_of(reading) == by_tag((tag, step, repr(value), 9.0) for tag, step, value in rows)
