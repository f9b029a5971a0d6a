"""transformers' trainer_state.json, a bare log history, and other JSON documents of a training's rows or columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from gradtrend.errors import EmptyLogError, InputError
from gradtrend.ingest.files.json_document import parse, read_text, rows_from, values_from
from gradtrend.ingest.files.streams import decoded_head, plain_name
from gradtrend.ingest.formats.json.shapes import rows_in, series_in
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.columns import Columns, series_of
from gradtrend.ingest.reading.names import name_metric
from gradtrend.ingest.reading.numbers import number, whole
from gradtrend.ingest.reading.rows import NOT_METRICS, STEP_KEYS, add_row, step_or_epoch, sums_up
from gradtrend.model.runlog import Settings, Skipped
from gradtrend.model.words import Role

_HEAD = 65536  # characters that are looked through: a compressed file's first bytes may hold a thousand times as many
_HISTORY = re.compile(r'"(?:log_history|history|logs|metrics|train_log)"\s*:\s*\[(?=\s*\{)')
_OBJECT = r'\{\s*"(?:\d+"\s*:\s*(?:-?[\d.]|nan|null)|(?:steps?|values?|x|y|timestamps)"\s*:\s*\[)'
_NUMBERS = r"\[\s*\[?\s*(?:-?[\d.]|nan|null)"
_KEY = re.compile(
    rf'"(?!\d+")([^"\\]{{1,100}})"\s*:\s*(?:-?[\d.]|"?-?(?:nan|inf)|null|{_NUMBERS}|{_OBJECT})', re.IGNORECASE
)
# Names that stand as values: rows of one metric each, and the columns of pandas' `split`.
_LONG_NAME = re.compile(r'"(?:metric_?name|metric|name|tag|key)"\s*:\s*"([^"\\]{1,100})"', re.IGNORECASE)
_LONG_VALUE = re.compile(r'"(?:metric_?)?value"\s*:', re.IGNORECASE)
_SPLIT = re.compile(r'"columns"\s*:\s*\[([^\[\]]*)\]')
_BY_METRIC = re.compile(
    rf'"(?:[^"]{{0,100}}(?:loss|norm)[^"]{{0,100}}|lr|learning_rate|epoch|(?:global_)?steps?)"\s*:\s*(?:{_NUMBERS}|{_OBJECT})',
    re.IGNORECASE,
)
_BY_STEP = re.compile(r'\{\s*"\d+"\s*:\s*\{')
_MOST_NAMES = 400  # looked at
_COUNTERS = {*STEP_KEYS, "epoch"}
_NEXT_OBJECT = re.compile(r"^\},?[ \t\r]*\n\{[ \t\r]*$", re.MULTILINE)  # no JSON lines: there a brace is never alone


def claims(path: Path, head: bytes) -> bool:
    """Whether it is JSON with a log history, or a list of rows (or dict of lists) that name a loss or a norm."""
    text = decoded_head(head).decode("utf-8", errors="replace").lstrip()
    if text[:1] not in ("{", "["):
        return False
    if plain_name(path) == "trainer_state.json":
        return True
    lines = _is_json_lines(text[:_HEAD])
    if '"log_history"' in text and not lines:  # ms-swift ends its JSON lines with a row that has one
        return True
    text = text[:_HEAD]
    if lines or PurePath(plain_name(path)).suffix.lower() in (".jsonl", ".ndjson", ".jsonlines"):
        return False
    return _names_metrics(text) and _is_history(text)


def _names_metrics(text: str) -> bool:
    """Whether a loss or a norm is named; where the text goes on, what stands ahead of them is enough."""
    names = _names_in(text)
    goes_on = len(text) == _HEAD
    telling = {Role.GRAD_NORM, Role.LOSS, *([Role.LR] if goes_on else [])}
    return any(name_metric(name).role in telling for name in names) or (goes_on and bool(names & _COUNTERS))


def _names_in(text: str) -> set[str]:
    """The keys of numbers, and the values that name one."""
    split = _SPLIT.search(text)
    names = {*_KEY.findall(text)[:_MOST_NAMES], *(re.findall(r'"([^"]*)"', split[1]) if split else ())}
    return names.union(_LONG_NAME.findall(text)[:_MOST_NAMES]) if _LONG_VALUE.search(text) else names


def _is_history(text: str) -> bool:
    """Whether it has one of the shapes in which a document holds a history."""
    if text[0] == "[" and text[1:].lstrip()[:1] == "{":
        return True
    shapes = (_HISTORY.search, _BY_METRIC.search, _BY_STEP.match, _NEXT_OBJECT.search)
    return _SPLIT.search(text) is not None or (text[0] == "{" and any(shape(text) for shape in shapes))


def _is_json_lines(text: str) -> bool:
    begun = "\n".join(text.split("\n", 3)[:3])
    lines = [line for line in begun.splitlines()[:3] if line.strip()]
    return len(lines) > 1 and all(line.startswith("{") and line.rstrip().endswith("}") for line in lines[:-1])


def read(path: Path, options: ReadOptions) -> Sequence[Reading]:
    """The rows of the history, as far as the file goes. Raises InputError where it holds none."""
    text = read_text(path)
    skipped: list[Skipped] = []
    document = parse(text)
    columns = _columns(text, document, skipped)
    series = series_of(columns)
    if not series and skipped:
        raise InputError(f"{path}: {skipped[0].reason}, and no other row is whole", "Write or copy the file again.")
    if not series:
        raise EmptyLogError(
            f"{path}: no log history in this JSON", "A trainer_state.json has a list `log_history` of rows."
        )
    return (
        Reading("trainer-state", path, series, settings=_settings(document)).with_skipped(
            (*skipped, *columns.skipped())
        ),
    )


def _columns(text: str, document: Any | None, skipped: list[Skipped]) -> Columns:
    if document is None:
        return _from_rows(_rows_of_damaged(text, skipped))
    rows = rows_in(document)
    return _from_lists(document) if rows is None else _from_rows(rows)


def _rows_of_damaged(text: str, skipped: list[Skipped]) -> Iterable[Any]:
    """The rows of a text that is no JSON as a whole: a list that is cut off, or objects one after another."""
    match = _HISTORY.search(text)
    if match is None and _NEXT_OBJECT.search(text):
        return values_from(text, text.find("{"), skipped)
    start = match.end() - 1 if match else text.find("[")
    return rows_from(text, start, skipped) if start >= 0 else ()


def _from_rows(rows: Iterable[Any]) -> Columns:
    columns = Columns()
    for position, row in enumerate(rows):
        if isinstance(row, Mapping) and not sums_up(row):
            add_row(columns, row, step_or_epoch(row, floats=True), position + 1)
    return columns


def _from_lists(document: Any) -> Columns:
    """Values by metric, such as a Keras history; the steps are the metric's own, or those of all."""
    series = {name: (steps, values) for name, steps, values in series_in(document)}
    shared = next((series[key][1] for key in (*STEP_KEYS, "epoch") if key in series), [])
    columns = Columns()
    for name, (own, values) in series.items():
        numbers = [number(value) for value in values]
        if name.lower() in NOT_METRICS or all(value is None for value in numbers):
            continue
        steps = own if own is not None else shared if len(shared) == len(values) else range(len(values))
        column = columns.of(name)
        for i, (step, value) in enumerate(zip(steps, numbers, strict=False)):  # of own steps some may be missing
            column.add(whole(step), value, None, i + 1)
    return columns


def _settings(document: Any) -> Settings:
    if not isinstance(document, dict) or "log_history" not in document:
        return Settings()
    return Settings(framework="transformers")
