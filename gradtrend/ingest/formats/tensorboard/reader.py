"""TensorBoard event files: every scalar, in file order, with NaN and inf, up to and around damage."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gradtrend.errors import InputError
from gradtrend.ingest.formats.tensorboard import NAME_PART, VERSION_RECORD
from gradtrend.ingest.formats.tensorboard.blocks import Block, blocks
from gradtrend.ingest.formats.tensorboard.checksums import HEADER_BYTES, header_length
from gradtrend.ingest.formats.tensorboard.columns import Column, EventDecoder
from gradtrend.ingest.formats.tensorboard.hparams import hparams_in
from gradtrend.ingest.formats.tensorboard.layout import layout_of
from gradtrend.ingest.limits import MOST_METRICS
from gradtrend.ingest.reading import MAX_SKIPPED_KEPT, Reading, ReadOptions
from gradtrend.model.runlog import Skipped


def claims(path: Path, head: bytes) -> bool:
    """Whether a file is an event file: its first record is the version header, or its name says so."""
    if path.is_dir():
        return False
    length = header_length(head[:HEADER_BYTES])
    is_version = length is not None and VERSION_RECORD in head[HEADER_BYTES : HEADER_BYTES + length]
    return is_version or NAME_PART in path.name


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """What one event file holds. Raises InputError where not one record of it is readable."""
    columns: list[Column] = []
    tags: set[str] = set()
    left_out = 0
    skipped: list[Skipped] = []
    records, further, head, started = 0, 0, b"", _time_in_name(path)
    given: dict[str, Any] = {}
    for block in blocks(path):
        given = given if head else hparams_in(block)
        head = head or bytes(block.data[:HEADER_BYTES])
        if started is None and not records:
            started = _first_time(block)
        decoder = EventDecoder(block, records)
        for column in decoder.columns():
            if column.slot.tag in tags or len(tags) < MOST_METRICS:
                tags.add(column.slot.tag)
                columns.append(column)
            else:
                left_out += column.record.size
        records += block.records.starts.size
        pieces = sorted((*block.records.damage, *decoder.broken), key=lambda piece: piece.offset or 0)
        further += max(0, len(skipped) + len(pieces) - MAX_SKIPPED_KEPT)
        skipped += pieces[: MAX_SKIPPED_KEPT - len(skipped)]
    if not records and len(head) == HEADER_BYTES and header_length(head) is None:
        raise InputError(
            f"{path} holds no readable TensorBoard record",
            "The file is damaged from its start or is no event file; point at another log of this run.",
        )
    columns = _drop_other_plugins(columns)
    if left_out:
        skipped.append(Skipped(f"values of metrics beyond the first {MOST_METRICS:,}: {left_out:,}"))
    reading = Reading(
        format="tensorboard",
        path=path,
        series=_series_of(columns),
        digits=min((column.slot.digits for column in columns), default=7),
        started=started,
        given=given,
    )
    return (reading.with_skipped(skipped, further),)


def _drop_other_plugins(columns: list[Column]) -> list[Column]:
    """The columns without one-element tensors of another plug-in, which only the first event of a tag may name."""
    plugin_of = {column.slot.tag: column.slot.plugin for column in columns if column.slot.plugin}
    return [
        column
        for column in columns
        if not column.slot.is_tensor or plugin_of.get(column.slot.tag, "scalars") == "scalars"
    ]


def _series_of(columns: list[Column]) -> dict[str, pl.DataFrame]:
    """One table for each tag, in file order; the tags in the order of their first event."""
    by_tag: dict[str, list[Column]] = {}
    for column in sorted(columns, key=lambda column: (int(column.record[0]), column.position)):
        by_tag.setdefault(column.slot.tag, []).append(column)
    return {tag: _joined(parts) for tag, parts in by_tag.items()}


def _joined(columns: list[Column]) -> pl.DataFrame:
    """The columns of one tag in file order."""
    record = np.concatenate([column.record for column in columns])
    points = pl.DataFrame(
        {
            "step": np.concatenate([column.step for column in columns]),
            "value": np.concatenate([column.value for column in columns]),
            "time": np.concatenate([column.time for column in columns]),
            "line": pl.repeat(None, record.size, dtype=pl.Int64, eager=True),
        }
    )
    if (np.diff(record) > 0).all():
        return points
    place = np.concatenate([np.full(column.record.size, column.position) for column in columns])
    return points[np.lexsort((place, record))]


def _time_in_name(path: Path) -> float | None:
    """When the writer opened the file, as TensorBoard's name for it says; copying a log keeps it."""
    match = re.search(re.escape(NAME_PART) + r"\.?(\d{9,11})\b", path.name)
    return float(match.group(1)) if match else None


def _first_time(block: Block) -> float | None:
    """The wall time of the first event: when this part of the run began."""
    if not block.records.starts.size:
        return None
    start, length = int(block.records.starts[0]), int(block.records.lengths[0])
    event = bytes(block.data[start : start + length])
    try:
        time_at = layout_of(event).time_at
    except ValueError:
        return None
    return None if time_at is None else float(struct.unpack_from("<d", event, time_at)[0])
