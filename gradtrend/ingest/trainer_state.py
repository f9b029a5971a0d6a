"""transformers' trainer_state.json, a bare log history, and other JSON lists of rows or columns of a training."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gradtrend.errors import EmptyLogError
from gradtrend.ingest.json_text import parse, read_text, rows_from
from gradtrend.ingest.reading import MAX_SKIPPED_KEPT, Adapter, Reading, ReadOptions
from gradtrend.ingest.roles import name_metric
from gradtrend.ingest.rows import NOT_METRICS, Column, add_row, number, series_of, step_of, whole
from gradtrend.ingest.text_stream import decoded_head, plain_name
from gradtrend.model.runlog import Settings, Skipped
from gradtrend.model.words import Role

_HISTORY = re.compile(r'"(?:log_history|history|logs|metrics|train_log)"\s*:\s*\[')
_KEY = re.compile(r'"([^"\\]{1,100})"\s*:\s*(?:-?[\d.]|"?-?(?:nan|inf)|null|\[\s*(?:-?[\d.]|nan|null))', re.IGNORECASE)
_SUFFIXES = (".json", ".txt", ".log", "")


def claims(path: Path, head: bytes) -> bool:
    """True for JSON with a log history, and for a JSON list of rows (or dict of lists) that name a loss or a norm."""
    text = decoded_head(head).decode("utf-8", errors="replace").lstrip()
    if text[:1] not in ("{", "["):
        return False
    if plain_name(path) == "trainer_state.json" or '"log_history"' in text:
        return True
    if _is_json_lines(text):
        return False
    names = set(_KEY.findall(text)[:400])
    if not any(name_metric(name).role in (Role.GRAD_NORM, Role.LOSS) for name in names):
        return False
    listed = text[0] == "[" and text[1:].lstrip()[:1] == "{"
    return listed or _HISTORY.search(text) is not None or (text[0] == "{" and _has_columns(text))


def _is_json_lines(text: str) -> bool:
    lines = [line for line in text.splitlines()[:3] if line.strip()]
    return len(lines) > 1 and all(line.startswith("{") and line.rstrip().endswith("}") for line in lines[:-1])


def _has_columns(text: str) -> bool:
    """Whether a dict holds lists of numbers: `{"loss": [1.2, 1.1], "grad_norm": [...]}`."""
    return re.search(r'"[^"]*(?:loss|norm)[^"]*"\s*:\s*\[\s*(?:-?[\d.]|NaN|null)', text, re.IGNORECASE) is not None


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """The rows of the history, as far as the file goes. Raises InputError where it holds none."""
    text = read_text(path)
    skipped: list[Skipped] = []
    document = parse(text)
    columns = _columns(text, document, skipped)
    series = series_of(columns)
    if not series:
        raise EmptyLogError(
            f"{path}: no log history in this JSON", "A trainer_state.json has a list `log_history` of rows."
        )
    return (
        Reading(
            "trainer-state",
            path,
            series,
            skipped=tuple(skipped[:MAX_SKIPPED_KEPT]),
            skipped_count=len(skipped),
            settings=_settings(document),
        ),
    )


def _columns(text: str, document: Any | None, skipped: list[Skipped]) -> dict[str, Column]:
    if document is None:
        match = _HISTORY.search(text)
        start = match.end() - 1 if match else text.find("[")
        return _from_rows(rows_from(text, start, skipped) if start >= 0 else ())
    if isinstance(document, list):
        return _from_rows(document)
    if not isinstance(document, dict):
        return {}
    for key in ("log_history", "history", "logs", "metrics", "train_log"):
        if isinstance(document.get(key), list):
            return _from_rows(document[key])
    nested = document.get("history")
    return _from_lists(nested if isinstance(nested, dict) else document)


def _from_rows(rows: Iterable[Any]) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for position, row in enumerate(rows):
        # The last row of a history sums the run up: its train_loss is the mean of all steps.
        if isinstance(row, Mapping) and "train_runtime" not in row:
            add_row(columns, row, _step(row), position + 1)
    return columns


def _step(row: Mapping[str, Any]) -> int | None:
    step = step_of(row)
    return whole(row.get("epoch")) if step is None else step


def _from_lists(document: Mapping[str, Any]) -> dict[str, Column]:
    """A dict of equally long lists, such as a Keras history."""
    lists = {name: values for name, values in document.items() if isinstance(values, list) and len(values) > 1}
    steps = next(
        (lists[key] for key in ("step", "steps", "global_step", "iteration", "iter", "epoch") if key in lists), []
    )
    columns: dict[str, Column] = {}
    for name, values in lists.items():
        numbers = [number(value) for value in values]
        if name.lower() in NOT_METRICS or all(value is None for value in numbers):
            continue
        column = columns[name] = Column()
        same = len(steps) == len(values)
        for i, value in enumerate(numbers):
            column.add(whole(steps[i]) if same else i, value, None, i + 1)
    return columns


def _settings(document: Any) -> Settings:
    if not isinstance(document, dict) or "log_history" not in document:
        return Settings()
    batch = document.get("train_batch_size")
    return Settings(framework="transformers", batch_size=batch if isinstance(batch, int) else None)


ADAPTER = Adapter("trainer-state", claims, read)
