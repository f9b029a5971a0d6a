"""Event files made of chosen events, and what a reading or another reader gives of them, as rows to compare."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from gradtrend.ingest.formats.tensorboard.checksums import masked_crc
from gradtrend.ingest.reading import Reading
from tests.ingest.readings import long_table

VERSION = Event(wall_time=1.5, file_version="brain.Event:2")


def framed(payload: bytes) -> bytes:
    header = struct.pack("<Q", len(payload))
    crcs = struct.pack("<I", masked_crc(header)), struct.pack("<I", masked_crc(payload))
    return header + crcs[0] + payload + crcs[1]


def write_events(path: Path, events: list[Event]) -> Path:
    path.write_bytes(b"".join(framed(event.SerializeToString()) for event in events))
    return path


Row = tuple[str, int, str, float]  # tag, step, repr of the value, wall time


def by_tag(rows: Iterable[Row]) -> list[Row]:
    """Rows in file order, put as a reading has them: one tag after another, as they first came."""
    tags: dict[str, list[Row]] = {}
    for row in rows:
        tags.setdefault(row[0], []).append(row)
    return [row for rows_of_tag in tags.values() for row in rows_of_tag]


def rows_of_events(events: Iterable[Event]) -> list[Row]:
    """The scalars of the old kind, as protobuf reads them."""
    return [
        (value.tag, event.step, repr(value.simple_value), event.wall_time)
        for event in events
        for value in event.summary.value
        if value.WhichOneof("value") == "simple_value"
    ]


def rows_of(reading: Reading) -> list[Row]:
    return [(row[0], row[1], repr(row[2]), row[3]) for row in long_table(reading).iter_rows()]


def rows_by_tbparse(path: Path) -> list[Row]:
    from tbparse import SummaryReader

    reader = SummaryReader(str(path), extra_columns={"wall_time"})
    frames = [frame for frame in (reader.scalars, reader.tensors) if not frame.empty]
    return [
        (row.tag, row.step, repr(float(row.value)), row.wall_time)
        for frame in frames
        for row in frame.itertuples()
        if np.ndim(row.value) == 0 and not isinstance(row.value, bytes | str)
    ]


def simple(tag: str, value: float) -> Summary.Value:
    return Summary.Value(tag=tag, simple_value=value)


def scalar_events(rows: Iterable[tuple[str, int, float, float]]) -> list[Event]:
    return [
        Event(wall_time=time, step=step, summary=Summary(value=[simple(tag, value)])) for tag, step, value, time in rows
    ]
