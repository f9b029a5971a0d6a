"""The hyperparameters of many runs -> one column a name, in which equal values have equal codes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from gradtrend.model.runlog import LEFT_OUT, Scalar

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ABSENT = -1
_MISSING: Any = object()
# "3e-4" is a number as MLflow and command lines keep it; "1_000" and "0x1f" are names.
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf(?:inity)?", re.IGNORECASE | re.ASCII)
MOST_NAMES = 2000  # a run has some hundred; where each run has names of its own, as of its files, few are shared
_LONGEST_NUMBER = 40  # characters
_SPELLINGS = {"true": "true", "false": "false", "none": "null", "null": "null"}


@dataclass(frozen=True, slots=True)
class Column:
    """One hyperparameter over all runs.

    `codes` is (n,) the number of each run's value, `ABSENT` where the run has none; `values` are the different values
    in that order, each as the first run has it, and `numbers` (k,) the same as numbers, NaN where they are none.
    """

    name: str
    codes: Codes
    values: tuple[Scalar, ...]
    numbers: npt.NDArray[np.float64]

    @property
    def present(self) -> Mask:
        """(n,) which runs have it."""
        mask: Mask = self.codes != ABSENT
        return mask


def columns_of(runs: Sequence[Mapping[str, Scalar]]) -> Iterator[Column]:
    """One column for each name that any run has, by name; of more than `MOST_NAMES` for those that most runs have.

    None for a name whose value was left out of a run: which runs that holds for says nothing of what they were given.
    """
    counts = Counter(chain.from_iterable(runs))
    for name in sorted(sorted(counts, key=lambda name: (-counts[name], name))[:MOST_NAMES]):
        column = _column(name, [run.get(name, _MISSING) for run in runs])
        if LEFT_OUT not in column.values:
            yield column


def _column(name: str, raw: list[Any]) -> Column:
    types = set(map(type, raw))
    numbers = _all_numbers(raw) if types <= {int, float} else None
    if numbers is not None:
        return _of_numbers(name, raw, numbers)
    if bool in types:  # True equals 1 as a key, and is no number
        raw = [(one,) if one is True or one is False else one for one in raw]
    code_of: dict[Any, int] = {_MISSING: ABSENT}
    known: dict[Scalar, int] = {}  # by what a value means: 0.1, "0.1" and "1e-1" are one
    values: list[Scalar] = []
    for one in dict.fromkeys(raw):
        if one is _MISSING:
            continue
        value: Scalar = one[0] if isinstance(one, tuple) else one
        code = code_of[one] = known.setdefault(_meaning(value), len(values))
        if code == len(values):
            values.append(value)
    as_numbers = [key if isinstance(key, float) else math.nan for key in known]
    codes = np.fromiter((code_of[one] for one in raw), dtype=np.int64, count=len(raw))
    return Column(name, codes, tuple(values), np.array(as_numbers, dtype=np.float64))


def _all_numbers(raw: list[Any]) -> npt.NDArray[np.float64] | None:
    """(n,) the values, None where one is NaN or beyond any float."""
    try:
        numbers = np.array(raw, dtype=np.float64)
    except OverflowError:
        return None
    return None if np.isnan(numbers).any() else numbers


def _of_numbers(name: str, raw: list[Any], numbers: npt.NDArray[np.float64]) -> Column:
    """As `_column`, for nothing but numbers in all runs, at a fifth of the time."""
    different, first, place = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    code_of = np.empty(order.size, dtype=np.int64)
    code_of[order] = np.arange(order.size)
    values = tuple(raw[at] for at in first[order].tolist())
    return Column(name, code_of[place], values, different[order] + 0.0)


def _meaning(value: Scalar) -> float | str:
    """A number, or the text of a word; `True`, "true" and True are the same."""
    if value is None or isinstance(value, bool):
        return _SPELLINGS[str(value).lower()]
    number = as_number(value)
    if number is not None:
        return number + 0.0  # no negative zero
    text = value.strip() if isinstance(value, str) else hex(value) if isinstance(value, int) else str(value)
    return _SPELLINGS.get(text.lower(), text)


def as_number(value: int | float | str) -> float | None:
    """A value as a number, infinity among them; None where it is none, or NaN, which has no place among others."""
    if isinstance(value, str):
        value = value.strip()
        if len(value) > _LONGEST_NUMBER or _NUMBER.fullmatch(value) is None:
            return None
    try:
        number = float(value)
    except (OverflowError, ValueError):  # a whole number beyond any float
        return None
    return None if math.isnan(number) else number
