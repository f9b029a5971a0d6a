"""metrics.jsonl and its like: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gradtrend.errors import InputError
from gradtrend.ingest.reading import MAX_SKIPPED_KEPT, Adapter, Reading, ReadOptions
from gradtrend.ingest.roles import name_metric
from gradtrend.ingest.rows import NOT_METRICS, Column, add_row, flatten, number, step_of, table_of, whole
from gradtrend.ingest.text_stream import decoded_head, open_log
from gradtrend.model.runlog import Skipped
from gradtrend.model.words import Role

_SUFFIXES = (".jsonl", ".ndjson", ".jsonlines")
_LONGEST_LINE = 16 * 1024 * 1024  # a row of metrics is a few kB; a longer line is a data dump, not a log


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def claims(path: Path, head: bytes) -> bool:
    """True for a file whose first full line is a JSON object of metrics, or that is named metrics.jsonl."""
    named = path.name.lower().removesuffix(".gz").removesuffix(".zst").endswith(_SUFFIXES)
    lines = [line for line in decoded_head(head).splitlines() if line.strip()][:20]
    rows = [row for row in map(_row, lines) if row is not None]
    if any(_is_metrics(row) for row in rows):
        return named or len(rows) >= max(1, len(lines) - 1)
    return named and path.name.lower().split(".")[0] in {"metrics", "log", "train_log", "train", "history"}


def _is_metrics(row: dict[str, Any]) -> bool:
    """A row with a step and a number, or with a gradient norm."""
    numbers = [k for k, v in flatten(row) if k.lower() not in NOT_METRICS and number(v) is not None]
    if step_of(row) is not None:
        return bool(numbers)
    return any(name_metric(k).role is Role.GRAD_NORM for k in numbers)


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """Every number of every row, NaN and inf included. Raises InputError where no line is a JSON object."""
    columns: dict[str, Column] = {}
    skipped: list[Skipped] = []
    rows = skipped_count = 0
    with open_log(path) as file:
        for number_of_line, line in enumerate(file, start=1):
            text = line.strip()
            if not text:
                continue
            row = _row(text) if len(text) <= _LONGEST_LINE else None
            if row is None:
                skipped_count += 1
                if len(skipped) < MAX_SKIPPED_KEPT:
                    skipped.append(Skipped(_reason(line), line=number_of_line))
                continue
            rows += 1
            add_row(columns, row, _step(row), number_of_line)
    if not rows:
        raise InputError(f"{path}: no line is a JSON object", "A metrics.jsonl has one JSON object a line.")
    return (Reading("jsonl", path, table_of(columns), skipped=tuple(skipped), skipped_count=skipped_count),)


def _step(row: dict[str, Any]) -> int | None:
    step = step_of(row)
    if step is None and "epoch" in row and isinstance(row["epoch"], int):
        return whole(row["epoch"])
    return step


def _reason(line: bytes) -> str:
    if len(line) > _LONGEST_LINE:
        return f"line of {len(line):,} bytes"
    return "not a JSON object" if line.endswith(b"\n") else "truncated"


ADAPTER = Adapter("jsonl", claims, read)
