"""The shapes in which one JSON document holds a history: rows, rows by step, or values by metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# How a document calls the steps and the values of one metric: Sacred, and plotting tools.
_STEPS_AND_VALUES = (("steps", "values"), ("step", "value"), ("x", "y"))
_HISTORIES = ("log_history", "history", "logs", "metrics", "train_log")


def rows_in(document: Any) -> Iterable[Any] | None:
    """The rows of a list of rows, under a usual name or not, of pandas' `split`, or of rows by step; else None."""
    if isinstance(document, list):
        return document
    if not isinstance(document, Mapping):
        return None
    for key in _HISTORIES:
        if isinstance(document.get(key), list):
            rows: list[Any] = document[key]
            return rows
    names, data = document.get("columns"), document.get("data")
    if isinstance(names, list) and isinstance(data, list):
        return [dict(zip(map(str, names), row, strict=False)) for row in data if isinstance(row, list)]
    if document and all(_is_index(key) and isinstance(row, Mapping) for key, row in document.items()):
        return [{"step": key, **row} for key, row in document.items()]
    return None


def series_in(document: Any) -> Iterator[tuple[str, list[Any] | None, list[Any]]]:
    """Each metric of a document of values by metric, its own steps (None where it has none), and its values.

    Values are a list, a list of [step, value], pandas' `columns` ({"0": 1.5, ...}), or lists of steps and of values.
    """
    if not isinstance(document, Mapping):
        return
    nested: Mapping[str, Any] = next((document[k] for k in _HISTORIES if isinstance(document.get(k), Mapping)), {})
    for name, held in {**document, **nested}.items():
        if isinstance(held, list):
            if held and all(isinstance(pair, list) and len(pair) == 2 for pair in held):
                yield name, [step for step, _ in held], [value for _, value in held]
            elif len(held) > 1:
                yield name, None, held
        elif isinstance(held, Mapping):
            lists = ((held.get(steps), held.get(values)) for steps, values in _STEPS_AND_VALUES)
            own = next(((s, v) for s, v in lists if isinstance(s, list) and isinstance(v, list)), None)
            if own is not None:
                yield name, *own
            elif held and all(map(_is_index, held)):
                yield name, None, list(held.values())


def _is_index(key: str) -> bool:
    return key.isascii() and key.isdecimal()
