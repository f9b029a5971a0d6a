"""A series as TensorBoard downloads it in JSON: [[wall time, step, value], ...], the metric only in the file's name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.files.json_document import parse, read_text, rows_from
from gradtrend.ingest.files.names import metric_of_file
from gradtrend.ingest.files.streams import decoded_head
from gradtrend.ingest.reading import MAX_SKIPPED_KEPT, Reading, ReadOptions
from gradtrend.ingest.reading.columns import Column, series_of
from gradtrend.ingest.reading.numbers import number, whole
from gradtrend.model.runlog import Skipped

_START = re.compile(
    rb'\s*\[\s*\[\s*\d+\.?\d*(?:e\+?\d+)?\s*,\s*\d+\s*,\s*(?:-?[\d.]+(?:e[-+]?\d+)?|"?-?(?:nan|inf(?:inity)?)"?)\s*\]',
    re.IGNORECASE,
)


def claims(path: Path, head: bytes) -> bool:
    """True for a JSON list that starts with a triple of time, step and value."""
    return _START.match(decoded_head(head)) is not None


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """The points of the series. Raises InputError where there is none."""
    text = read_text(path)
    skipped: list[Skipped] = []
    points = parse(text)
    column = Column()
    bad = 0
    for i, point in enumerate(points if isinstance(points, list) else rows_from(text, text.find("["), skipped)):
        step = whole(point[1]) if isinstance(point, list) and len(point) == 3 else None
        if step is None:
            bad += 1
            if bad <= MAX_SKIPPED_KEPT:
                skipped.append(Skipped(f"entry {i} is no triple of time, step and value"))
        else:
            column.add(step, number(point[2]), number(point[0]), None)
    series = series_of({metric_of_file(path): column})
    if not series:
        raise InputError(
            f"{path}: no triple of time, step and value", "TensorBoard's JSON download is a list of these."
        )
    return (
        Reading(
            "tensorboard-json",
            path,
            series,
            digits=7,
            skipped=tuple(skipped[:MAX_SKIPPED_KEPT]),
            skipped_count=len(skipped) + max(0, bad - MAX_SKIPPED_KEPT),
        ),
    )
