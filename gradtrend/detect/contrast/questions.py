"""A column -> the questions that are asked of it: whether its size, one of its values, or its being there at all tells
sick runs from healthy ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradtrend.detect.contrast.columns import ABSENT, Codes, Column, Mask
from gradtrend.detect.contrast.ranks import Floats, least_rank_p
from gradtrend.detect.contrast.tables import least_table_p
from gradtrend.model.many.contrast import ContrastKind
from gradtrend.model.runlog import Scalar

_FEW_VALUES = 5  # of a number: each may also be what is wrong by itself, as the one batch size that does not divide
_MOST_PARTS = 20  # values that are tested, those of the most runs: each makes the others' p count for less
_NEARLY_ALL = 0.9  # of the runs: a number that so many share parts them by that value and not by its size
# What tells runs apart and measures nothing: a larger one is neither more nor less of anything.
_LABEL = re.compile(
    r"(?:^|.*_)(?:seed|random_state|id|ids|pid|port|uuid|hash|sha|commit|timestamp|datetime|date|created|created_at"
    r"|started|started_at|start_time|run_number|trial_number|run_index|trial|version|rank|master_port)"
    r"|time|run|job|index|number|name"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[/.]")


@dataclass(frozen=True, slots=True)
class Question:
    """One column asked in one way.

    `codes` is (n,) as a column's; `numbers` (n,) each run's number where its size is asked for, NaN where the run has
    none; `parts` are the codes that are each tested against the others, `values` what they stand for. `key` is the same
    for what parts the runs in the same way, and `least` the smallest p that the answer can come to.
    """

    names: tuple[str, ...]
    codes: Codes
    values: tuple[Scalar, ...]
    key: bytes
    parts: tuple[int, ...] = ()
    numbers: Floats | None = None
    part_kind: ContrastKind = ContrastKind.VALUE
    least: float = 1.0

    @property
    def tests(self) -> int:
        """How many tests its answer is the best of."""
        return len(self.parts) + (self.numbers is not None)


def questions_of(columns: Iterable[Column], sick: Mask, level: float) -> list[Question]:
    """What there is to ask of the columns, once where several part the runs in the same way."""
    by_key: dict[bytes, Question] = {}
    for column in columns:
        for question in _asked(column):
            same = by_key.get(question.key)
            if same is None:
                by_key[question.key] = question
            elif column.name not in same.names:
                by_key[question.key] = _plainer(same, question)
    return [_testable(question, sick, level) for question in by_key.values()]


def _plainer(first: Question, second: Question) -> Question:
    """The one of two that says more, under both names: a value more than its being there, a short path than a long."""
    one, other = sorted((first, second), key=lambda q: (q.part_kind is ContrastKind.PRESENCE, _depth(q.names[0])))
    return replace(one, names=(*one.names, *other.names))


def _depth(name: str) -> tuple[int, int, str]:
    return (len(_SEPARATORS.findall(name)), len(name), name)


def _asked(column: Column) -> Iterator[Question]:
    names, present = (column.name,), column.present
    numeric = np.isfinite(column.numbers) | np.isinf(column.numbers)
    different = int(numeric.sum())
    words = len(column.values) - different
    sized = different > 2 and not _is_label(column.name) and not _dominated(column, numeric)
    if sized:
        numbers = np.append(column.numbers, np.nan)[column.codes]  # ABSENT is -1, the last
        parts = tuple(range(different)) if words == 0 and different <= _FEW_VALUES else ()
        yield Question(names, column.codes, column.values, _order_key(numbers), parts, numbers)
    if words or not sized:
        own = [code for code in range(len(column.values)) if not (sized and numeric[code] and different > _FEW_VALUES)]
        if len(column.values) > 1:
            yield _of_values(names, column.codes, column.values, own)
    if not present.all():
        there = np.where(present, 0, 1)
        key = b"v" + (there if there[0] == 0 else 1 - there).tobytes()  # as `_of_values` has it
        yield Question(names, there, (None, None), key, (0,), part_kind=ContrastKind.PRESENCE)


def _of_values(names: tuple[str, ...], codes: Codes, values: tuple[Scalar, ...], parts: Sequence[int]) -> Question:
    """Codes are numbered as they first come, so that they are themselves what tells which runs are together."""
    if len(values) == 2:
        parts = [1]  # against the other, which is the same test
    elif len(parts) > _MOST_PARTS:
        counts = np.bincount(codes[codes != ABSENT], minlength=len(values))
        parts = sorted(parts, key=lambda code: (-counts[code], code))[:_MOST_PARTS]
    return Question(names, codes, values, b"v" + codes.tobytes(), tuple(parts))


def _order_key(numbers: Floats) -> bytes:
    """The same for numbers in the same order, or in the reverse one."""
    known = ~np.isnan(numbers)
    _, place = np.unique(numbers[known], return_inverse=True)
    codes: Codes = np.full((2, numbers.size), ABSENT)
    codes[0, known] = place
    codes[1, known] = place.max() - place
    return b"n" + min(bytes(order) for order in codes)


def _is_label(name: str) -> bool:
    last = _CAMEL.sub("_", _SEPARATORS.split(name)[-1]).replace("-", "_").lower()
    return _LABEL.fullmatch(last) is not None


def _dominated(column: Column, numeric: Mask) -> bool:
    """Whether nearly all runs that have a number have the same one."""
    counts = np.bincount(column.codes[column.present], minlength=len(column.values))[numeric]
    return bool(counts.max() > _NEARLY_ALL * counts.sum())


def _testable(question: Question, sick: Mask, level: float) -> Question:
    """The question with those of its parts that could come to anything, and the least p of what is left."""
    have = question.codes != ABSENT
    runs, ill = int(have.sum()), int((have & sick).sum())
    counts = np.bincount(question.codes[have], minlength=len(question.values))
    able = {code: least for code in question.parts if (least := least_table_p(int(counts[code]), ill, runs)) <= level}
    question = replace(question, parts=tuple(able))
    leasts = list(able.values())
    if question.numbers is not None:
        known = ~np.isnan(question.numbers)
        leasts.append(least_rank_p(question.numbers[known], int((known & sick).sum())))
    return replace(question, least=min([1.0, *(question.tests * least for least in leasts)]))
