"""Weights & Biases offline runs, written record by record as wandb does, and its own files."""

from __future__ import annotations

import json
import math
import struct
import time
import zlib
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradtrend.errors import InputError
from gradtrend.ingest.files.protobuf import whole_fields
from gradtrend.ingest.formats.wandb import ADAPTER, reader
from gradtrend.ingest.formats.wandb.records import records
from gradtrend.ingest.reading import Reading, ReadOptions
from tests.ingest.readings import long_table
from tests.places import RUNS

OFFLINE = RUNS / "wandb"
FILES = sorted(OFFLINE.rglob("*.wandb"))
BLOCK = 32 * 1024


def write(path: Path, messages: list[bytes]) -> Path:
    """LevelDB's log format, as wandb writes it."""
    data = bytearray(b":W&B\xe1\xbe\x00")
    for message in messages:
        first = True
        while first or message:
            left = BLOCK - len(data) % BLOCK
            if left < 7:
                data += b"\0" * left
                left = BLOCK
            piece, message = message[: left - 7], message[left - 7 :]
            kind = (1 if first else 4) if not message else (2 if first else 3)
            data += struct.pack("<IHB", zlib.crc32(bytes([kind]) + piece), len(piece), kind) + piece
            first = False
    path.write_bytes(data)
    return path


def row(step: int, metrics: dict[str, object]) -> bytes:
    from wandb.proto import wandb_internal_pb2 as proto

    record = proto.Record()
    record.history.step.num = step
    for name, value in metrics.items():
        item = record.history.item.add()
        item.nested_key.extend(name.split("."))
        item.value_json = json.dumps(value)
    return bytes(record.SerializeToString())


def axis(name: str, step_metric: str, glob: bool = False) -> bytes:
    from wandb.proto import wandb_internal_pb2 as proto

    record = proto.Record()
    setattr(record.metric, "glob_name" if glob else "name", name)
    record.metric.step_metric = step_metric
    return bytes(record.SerializeToString())


def read(path: Path) -> Reading:
    assert ADAPTER.claims(path, path.read_bytes()[:64])
    (reading,) = reader.read(path, ReadOptions())
    return reading


def points(reading: Reading, metric: str) -> list[tuple[int | None, str]]:
    rows = long_table(reading).filter(pl.col("metric") == metric)
    return [(step, repr(value)) for step, value in rows.select("step", "value").iter_rows()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parents[2].name)
def test_records_are_those_that_wandb_reads(path: Path) -> None:
    from wandb.proto import wandb_internal_pb2 as proto

    skipped: list[object] = []
    read_records = list(records(path, skipped))  # type: ignore[arg-type]
    assert not skipped
    rows = 0
    for message in read_records:
        record = proto.Record()
        record.ParseFromString(message)
        rows += record.WhichOneof("record_type") == "history"
        assert {number for number, _ in whole_fields(message)} >= {field.number for field, _ in record.ListFields()}
    assert rows in (40, 80)


NUMBERS = st.floats(width=64) | st.sampled_from([math.nan, math.inf, -math.inf])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=12), st.integers(0, 40_000))
def test_what_is_written_is_read_back_across_blocks(tmp_path: Path, values: list[float], padding: int) -> None:
    odd = [v if math.isfinite(v) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(v)] for v in values]
    messages = [row(i, {"grad_norm": value, "note": "x" * padding}) for i, value in enumerate(odd)]
    reading = read(write(tmp_path / "run-1.wandb", messages))
    assert points(reading, "grad_norm") == [(i, repr(value)) for i, value in enumerate(values)]
    assert not reading.skipped


def test_the_x_axis_is_what_define_metric_says_then_a_global_step_then_the_row(tmp_path: Path) -> None:
    rows = [row(i, {"train/loss": 2.0, "gan/g_loss": 1.0, "my_step": 100 * i, "global_step": 7 * i}) for i in (1, 2)]
    reading = read(write(tmp_path / "run-1.wandb", [axis("gan/*", "my_step", glob=True), *rows, row(3, {"late": 1.5})]))
    assert [step for step, _ in points(reading, "gan/g_loss")] == [100, 200]
    assert [step for step, _ in points(reading, "train/loss")] == [7, 14]
    assert [step for step, _ in points(reading, "late")] == [3]
    assert "global_step" not in long_table(reading)["metric"].to_list()


def test_nested_names_are_joined(tmp_path: Path) -> None:
    reading = read(write(tmp_path / "run-1.wandb", [row(0, {"grad_norm.total": 1.5, "grad_norm.enc": {"w": 2.0}})]))
    assert points(reading, "grad_norm/total") == [(0, "1.5")]
    assert points(reading, "grad_norm/enc/w") == [(0, "2.0")]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_cut_run_gives_the_rows_before_the_cut(tmp_path: Path, data: st.DataObject) -> None:
    whole = FILES[0].read_bytes()
    path = tmp_path / "run-1.wandb"
    path.write_bytes(whole[: data.draw(st.integers(7, len(whole) - 1))])
    try:
        (part,) = reader.read(path, ReadOptions())
    except InputError:
        return
    rows = points(part, "grad_norm")
    assert rows == points(read(FILES[0]), "grad_norm")[: len(rows)]


def test_a_damaged_block_is_passed_over_and_said(tmp_path: Path) -> None:
    messages = [row(i, {"grad_norm": float(i), "note": "x" * 2000}) for i in range(60)]
    path = write(tmp_path / "run-1.wandb", messages)
    damaged = bytearray(path.read_bytes())
    damaged[BLOCK + 5000 : BLOCK + 5100] = b"\xff" * 100
    path.write_bytes(damaged)
    reading = read(path)
    steps = [step for step, _ in points(reading, "grad_norm")]
    assert steps[0] == 0
    assert steps[-1] == 59
    assert 30 < len(steps) < 60
    assert reading.skipped_count >= 1


def test_an_empty_run_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no logged values"):
        reader.read(write(tmp_path / "run-1.wandb", []), ReadOptions())


def test_a_record_in_a_hundred_thousand_pieces_takes_no_time_by_the_square(tmp_path: Path) -> None:
    def piece(kind: int) -> bytes:
        return struct.pack("<IHB", zlib.crc32(b"a", zlib.crc32(bytes([kind]))), 1, kind) + b"a"

    path = tmp_path / "run-x.wandb"
    path.write_bytes(b":W&B\xad\xbe\x00" + b"\0" + piece(2) + piece(3) * 100_000)
    began = time.monotonic()
    assert list(records(path, [])) == []
    assert time.monotonic() - began < 5
