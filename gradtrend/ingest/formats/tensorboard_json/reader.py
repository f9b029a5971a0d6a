"""A series as TensorBoard downloads it in JSON: [[wall time, step, value], ...], the metric only in the file's name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from gradtrend.errors import InputError
from gradtrend.ingest.files.json_document import parse, read_text, rows_from
from gradtrend.ingest.files.streams import decoded_head
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.columns import Column, series_of
from gradtrend.ingest.reading.file_names import metric_of_file
from gradtrend.ingest.reading.numbers import number, whole
from gradtrend.model.runlog import Skipped

_START = re.compile(
    rb'\s*\[\s*\[\s*\d+\.?\d*(?:e\+?\d+)?\s*,\s*\d+\s*,\s*(?:-?[\d.]+(?:e[-+]?\d+)?|"?-?(?:nan|inf(?:inity)?)"?)\s*\]',
    re.IGNORECASE,
)


def claims(path: Path, head: bytes) -> bool:
    """Whether it is a JSON list that starts with a triple of time, step and value."""
    return _START.match(decoded_head(head)) is not None


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """The points of the series. Raises InputError where there is none."""
    text = read_text(path)
    damage: list[Skipped] = []
    document = parse(text)
    points = document if isinstance(document, list) else list(rows_from(text, text.find("["), damage))
    column = Column()
    for point in points:
        step = _step(point)
        if step is not None:
            column.add(step, number(point[2]), number(point[0]), None)
    series = series_of({metric_of_file(path): column})
    if not series:
        raise InputError(
            f"{path}: no triple of time, step and value", "TensorBoard's JSON download is a list of these."
        )
    others = (i for i, point in enumerate(points) if _step(point) is None)  # one by one: there may be millions
    bad = (Skipped(f"entry {i} is no triple of time, step and value") for i in others)
    return (Reading("tensorboard-json", path, series, digits=7).with_skipped(chain(bad, damage)),)


def _step(point: Any) -> int | None:
    """The step of a triple of time, step and value; None of anything else."""
    return whole(point[1]) if isinstance(point, list) and len(point) == 3 else None
