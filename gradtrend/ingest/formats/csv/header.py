"""The header of a table: what its columns are called, and which of them count, time or measure something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from gradtrend.ingest.formats.csv.cells import SEPARATORS, split
from gradtrend.ingest.reading.names import name_metric
from gradtrend.ingest.reading.numbers import parse_number, whole
from gradtrend.ingest.reading.rows import LONG_NAMES, LONG_VALUES, NOT_METRICS, PART_KEYS, STEP_KEYS, counted
from gradtrend.model.words import Role

_BY_PREFERENCE = ("global_step", "trainer/global_step", *STEP_KEYS, "iterations", "training_step", "update_step")
# What counts where none of these does, by the last part of its name, best first: `total/steps`, `TotalEnvInteracts`.
_LESSER = (
    *_BY_PREFERENCE, "timesteps", "total_steps", "env_steps", "total_env_steps", "totalenvinteracts", "num_timesteps",
    "frames", "frame", "episode", "episodes", "round", "generation",
)  # fmt: skip
_EPOCHS = ("epoch", "epochs")
_TIMES = frozenset({"wall time", "wall_time", "timestamp", "_timestamp", "time"})
_INDEX = re.compile(r"|index|unnamed: 0", re.IGNORECASE)  # what pandas and R call the numbers of their rows
_LONG_NAMES = frozenset(map(str.lower, LONG_NAMES))
_LONG_VALUES = frozenset(map(str.lower, LONG_VALUES))
_BOUNDS = re.compile(r"__(?:MIN|MAX|STEP)$")  # columns that Weights & Biases adds to a download
_UNIT = re.compile(r"(?<!\s)\s*(?:\[[^\[\]]*\]|\([^()]*\))$")  # `Step [#]`, `Time (s)`


Line = tuple[int, str, bool]  # its number, its text, and whether a newline ends it


@dataclass(slots=True)
class Header:
    """The columns of a table: their names, each once ("" for a column to be left out), and as they stand in it
    (`named`); the places of the step, the epoch and the time (None where there is none) and of what is measured.
    `counters` are the places of all that may be the step, best first, `index` that of the numbers of the rows, `part`
    of the word that says of which data a row is.
    """

    names: list[str]
    named: list[str]
    separator: str
    counters: list[int]
    epoch: int | None
    time: int | None
    index: int | None = None
    part: int | None = None
    step: int | None = None
    metrics: list[int] = field(default_factory=list)


def header_of(line: str, fewest: int = 2) -> Header | None:
    """The header that a line is, or None: at least so many columns, of which none is called by a number."""
    line = line.lstrip("\ufeff")
    separator = max(SEPARATORS, key=line.count)
    names = split(line, separator)
    if len(names) < fewest or any(parse_number(name) is not None for name in names) or not any(names):
        return None
    return header_with(names, separator)


def first_header(lines: Iterator[Line], fewest: int) -> tuple[Header | None, list[Line]]:
    """The header that begins a table, behind remarks (`# started at ...`) or in the last of them (`# step,loss`), and
    the lines that were read beyond it.
    """
    remark = ""
    for line in lines:
        text = line[1].lstrip("\ufeff")
        if text.startswith("#"):
            remark = text.lstrip("# ")
        elif text.strip():
            named = header_of(remark, fewest) if remark else None
            header = header_of(text, fewest)
            if header is None and named is not None and len(split(text, named.separator)) == len(named.names):
                return named, [line]
            return header, []
    return None, []


def header_with(names: Sequence[str], separator: str) -> Header:
    """The header of columns with these names."""
    low = [_UNIT.sub("", name).lower() for name in names]
    low = [name if name in _TIMES else name.replace(" ", "_") for name in low]
    counters = [low.index(key) for key in _BY_PREFERENCE if key in low]
    epoch = next((low.index(key) for key in _EPOCHS if key in low), None)
    time = next((i for i, name in enumerate(low) if name in _TIMES), None)
    index = 0 if _INDEX.fullmatch(names[0]) and len(names) > 1 else None
    part = next((low.index(key) for key in PART_KEYS if key in low), None)
    header = Header(_each_once(names), list(names), separator, counters, epoch, time, index, part)
    header.metrics = [
        i
        for i, name in enumerate(header.names)
        if name
        and i not in (epoch if not counters else None, time, index)
        and i not in counters
        and low[i] not in NOT_METRICS
        and not _BOUNDS.search(name)
    ]
    return header


def _each_once(names: Sequence[str]) -> list[str]:
    """The names, a repeated one with a number behind it, as pandas reads them: no column may take another's place."""
    seen: dict[str, int] = {}
    result: list[str] = []
    for name in names:
        seen[name] = seen.get(name, -1) + 1
        result.append(f"{name}.{seen[name]}" if name and seen[name] else name)
    return result


def with_step(header: Header, rows: Sequence[list[str]]) -> None:
    """Settle which column is the step: the best counter that has whole numbers in these, the first rows of the table.

    Ray Tune writes `timesteps_total` also where it counts none. An index counts where nothing else does, and where it
    is more than the number of the row.
    """
    header.step = next((i for i in header.counters if any(counted(row[i]) is not None for row in rows)), None)
    if header.step is None and header.epoch is None:
        header.step = _lesser_counter(header, rows)
    if header.step is None and header.epoch is None and header.index is not None:
        numbers = [whole(row[header.index]) for row in rows]
        if None not in numbers and numbers not in (list(range(len(rows))), list(range(1, len(rows) + 1))):
            header.step = header.index


def _lesser_counter(header: Header, rows: Sequence[list[str]]) -> int | None:
    """The place of a column that is called like a counter, and counts up from row to row; None without one."""
    ends = {
        re.split(r"[/.]", name.lower().replace(" ", "_"))[-1]: i for i, name in reversed([*enumerate(header.names)])
    }
    for place in (ends[name] for name in _LESSER if name in ends):
        numbers = [whole(row[place]) for row in rows]
        known = [number for number in numbers if number is not None]
        if len(known) == len(numbers) > 1 and known[0] < known[-1] and all(a <= b for a, b in pairwise(known)):
            return place
    return None


def is_training(header: Header) -> bool:
    """Whether a column is a gradient norm or a loss, and another counts or measures beside it."""
    roles = {name_metric(header.names[i].rsplit(" - ", 1)[-1]).role for i in header.metrics}
    return bool(roles & {Role.GRAD_NORM, Role.LOSS}) and (
        bool(header.counters) or header.epoch is not None or len(header.metrics) > 1
    )


def is_download(header: Header) -> bool:
    """TensorBoard's own: `Wall time,Step,Value`, the metric only in the file's name."""
    return [name.lower() for name in header.names] == ["wall time", "step", "value"]


def long_columns(header: Header) -> tuple[int, int] | None:
    """The columns of a table of one row a value: (name, value); None for any other."""
    low = [name.lower() for name in header.names]
    name = next((i for i, column in enumerate(low) if column in _LONG_NAMES), None)
    value = next((i for i, column in enumerate(low) if column in _LONG_VALUES), None)
    return None if name is None or value is None or not header.counters else (name, value)


def metric_names(header: Header) -> list[str]:
    """What the measured columns are called: `run name - train/loss`, as Weights & Biases downloads have it, without the
    name of the run, where that leaves every column a name of its own.
    """
    names = [header.names[i] for i in header.metrics]
    short = [_without_run(name) for name in names]
    return short if len(set(short)) == len(short) else names


def _without_run(name: str) -> str:
    tail = name.rsplit(" - ", 1)[-1]
    return tail if tail != name and name_metric(tail).role is not Role.OTHER else name
