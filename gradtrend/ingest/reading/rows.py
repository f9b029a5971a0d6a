"""Logged rows (dicts of one step) -> the series of a reading. Shared by every adapter that reads rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gradtrend.ingest.reading.columns import Columns
from gradtrend.ingest.reading.names import normalise
from gradtrend.ingest.reading.numbers import number, whole
from gradtrend.ingest.reading.patterns import HELD_OUT, HELD_OUT_WORDS

# What a row's own counter is called, best first. `epoch` counts only where nothing finer is logged.
STEP_KEYS = (
    "step", "global_step", "_step", "trainer/global_step", "train/global_step", "current_step", "train_step",
    "steps", "iteration", "iter", "it", "num_updates", "update", "batch", "i", "n_iter", "global_iter", "train_steps",
    "completed_steps", "current_steps", "Step", "Iteration", "time/total_timesteps", "total_timesteps",
    "timesteps_total", "training_iteration", "time/iterations",
)  # fmt: skip
_PAIR = re.compile(r"\s*(\d{1,18})\s*/\s*\d+\s*")  # "5/500": how far a counter is
EARLIEST_TIME = 1e8  # seconds, in 1973: smaller numbers count from the start of the run
FIRST_MILLISECONDS = 1e11  # in seconds the year 5138, so these are milliseconds, as MLflow and JavaScript write
TIME_KEYS = ("timestamp", "_timestamp", "time", "wall_time", "_runtime")
NOT_METRICS = frozenset({*map(str.lower, STEP_KEYS), *TIME_KEYS, "current_epoch", "seed", "rank", "pid", "version"})
SUMMARY_KEY = "train_runtime"
# Keys of a row of one value: {"name": "loss", "value": 1.5, "step": 3}; what tells rows of one name apart.
LONG_NAMES = ("metric", "metric_name", "metricName", "name", "key", "tag")
LONG_VALUES = ("value", "metric_value", "metricValue")
PART_KEYS = ("split", "phase", "stage", "mode", "subset", "event", "kind", "type", "set")
_ANY_PART = frozenset(PART_KEYS)
_PARTS = (*PART_KEYS[:5], "tag")
_HELD_OUT_PARTS = frozenset({*HELD_OUT_WORDS, "dev", "holdout"})
_NO_VALUES = NOT_METRICS | {"epoch"}  # beside the value of a row of one
_USUAL_DEPTH = 20
# Ray Tune repeats hundreds of these in each row; others have them in the first.
_SETTINGS = frozenset({"config", "cfg", "args", "arguments", "hparams", "hyperparameters"})


def flatten(row: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Leaves of a nested row, keys joined by `/`. Lists are no scalars and are left out, but one of length one.

    What a row repeats of the run's settings, as a mapping of its own, is no metric and left out.
    """
    for key, value in row.items():
        name = f"{prefix}/{key}" if prefix else str(key)
        if isinstance(value, dict):
            if depth > _USUAL_DEPTH:
                yield from _deep_leaves(value, name)
            elif depth or key not in _SETTINGS:
                yield from flatten(value, name, depth + 1)
        elif isinstance(value, list):
            if len(value) == 1:
                yield name, value[0]
        else:
            yield name, value


def _deep_leaves(row: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """As `flatten`, more slowly, and however deep a row is: a parser may go deeper than its caller has stack left."""
    above = [(prefix, iter(row.items()))]
    while above:
        prefix, items = above[-1]
        for key, value in items:
            if isinstance(value, dict):
                above.append((f"{prefix}/{key}", iter(value.items())))
                break
            yield from flatten({f"{prefix}/{key}": value})
        else:
            above.pop()


def sums_up(row: Mapping[str, Any]) -> bool:
    """Whether a row is transformers' last: it sums the run up, and its train_loss is the mean of all steps."""
    return SUMMARY_KEY in row


def settings_in(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a row repeats of the run's settings, empty where it has none."""
    if _SETTINGS.isdisjoint(row):
        return {}
    held = (row[key] for key in row if key in _SETTINGS)
    return next((one for one in held if isinstance(one, Mapping)), {})


def counted(value: Any) -> int | None:
    """A counter as int: a whole number, or the first of "5/500"."""
    step = whole(value)
    if step is None and isinstance(value, str) and (pair := _PAIR.fullmatch(value)) is not None:
        return int(pair[1])
    return step


def is_pair(key: str) -> bool:
    """Whether a key names a counter and its end, as ms-swift's `global_step/max_steps` does."""
    first, slash, _ = key.partition("/")
    return bool(slash) and first in STEP_KEYS


def step_of(row: Mapping[str, Any]) -> int | None:
    """The row's step under any usual name, also where it is told with its end: `"step": "5/500"`."""
    for key in STEP_KEYS:
        if key in row:
            step = counted(row[key])
            if step is not None:
                return step
    pairs = (value for key, value in row.items() if isinstance(value, str) and is_pair(key))
    return next((step for value in pairs if (step := counted(value)) is not None), None)


def step_or_epoch(row: Mapping[str, Any], floats: bool = False) -> int | None:
    """The row's step; of a row without one the epoch, where that is an integer.

    `floats` says that an epoch of 1.0 is one, too: pandas makes floats of integers where a column has gaps. Trainers
    that log floats log fractions (0.5, 1.0, 1.5), and those that happen to be whole are no steps.
    """
    step = step_of(row)
    epoch = row.get("epoch")
    if step is not None or not (floats or isinstance(epoch, int)):
        return step
    return whole(epoch)


_LATEST_TIME = 1e20  # beyond the nanoseconds of any clock; a whole number may be too large for a float


def time_of(row: Mapping[str, Any]) -> float | None:
    """Seconds since the epoch where the row gives them as a number of that size."""
    for key in TIME_KEYS:
        value = row.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        if EARLIEST_TIME < value < _LATEST_TIME:
            return value / 1000 if value > FIRST_MILLISECONDS else float(value)
    return None


def _widened(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row of one value under its metric's name, `val/loss` where a split is named; any other row as it is."""
    value_key = next((key for key in LONG_VALUES if key in row), None)
    name_key = next((key for key in LONG_NAMES if isinstance(row.get(key), str)), None)
    if value_key is None or name_key is None:
        return row
    counters = {key: leaf for key, leaf in row.items() if key.lower() in _NO_VALUES}
    if any(number(leaf) is not None for key, leaf in row.items() if key != value_key and key not in counters):
        return row
    parts = [row[key] for key in _PARTS if key != name_key and isinstance(row.get(key), str)]
    return {**counters, "/".join((*parts, row[name_key])): row[value_key]}


def held_out_part(part: Any) -> str | None:
    """The word by which a row says that it is of held-out data, if that is what it says of itself."""
    word = part.strip().lower() if isinstance(part, str) else ""
    return word if word in _HELD_OUT_PARTS else None


def named_by_part(name: str, part: str) -> str:
    """The name of a metric on a row of held-out data: `val/loss`, unless it says so itself."""
    return name if HELD_OUT.search(normalise(name)) else f"{part}/{name}"


def _part_of(row: Mapping[str, Any]) -> str | None:
    if _ANY_PART.isdisjoint(row):
        return None
    parts = (held_out_part(row[key]) for key in PART_KEYS if key in row)
    return next((part for part in parts if part is not None), None)


def add_row(columns: Columns, row: Mapping[str, Any], step: int | None, line: int | None) -> None:
    """Add one row's metrics to the columns."""
    row = _widened(row)
    time = time_of(row)
    part = _part_of(row)
    for name, leaf in flatten(row):
        if name.lower() in NOT_METRICS:
            continue
        value = number(leaf)
        if value is None and leaf is not None:
            continue
        metric = name if part is None or name == "epoch" else named_by_part(name, part)
        columns.of(metric).add(step, value, time, line)
