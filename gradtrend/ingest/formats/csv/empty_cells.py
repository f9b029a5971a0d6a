"""Rows of a table in which an empty cell may mean "not logged on this row" or NaN, and how to tell.

Lightning writes training and validation rows into one table, each with the other's cells empty. pandas writes NaN as an
empty cell. Which it is shows in the cells filled together: a cell is NaN on a row of the kind on which its column is
logged, if that column is logged row after row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gradtrend.errors import InputError
from gradtrend.ingest.reading.columns import Column
from gradtrend.ingest.reading.names import name_metric
from gradtrend.model.words import Role

_Mask = npt.NDArray[np.bool_]

_DENSE = 0.5  # share of rows that are filled, or of filled ones whose next is, too: row after row, not every tenth
# Rows further apart than twice the column's own are of another kind.
_PACE = 2.0
# What could not have a number were the other NaN for long.
_WITNESS = {Role.GRAD_NORM: Role.LOSS, Role.LOSS: Role.GRAD_NORM}
# Updates that a loss scaler skips on end while it finds its scale.
_SKIPPED_ON_END = 4
# Cells compared with one another, in a minute or less. 3,000 layers that become NaN one after another over 10,000 rows
# come to 90 billion; a table of 100,000 columns made to cost time comes to more.
_MOST_CELLS = 1e11


class WideRows:
    """A table of metrics while it is read; None stands for a cell without a number."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._steps: list[int | None] = []
        self._times: list[float | None] = []
        self._lines: list[int] = []
        self._cells: list[list[float | None]] = [[] for _ in names]
        self._empty: list[list[bool]] = [[] for _ in names]

    def add(
        self,
        step: int | None,
        time: float | None,
        line: int,
        values: Sequence[float | None],
        empty: Sequence[bool],
    ) -> None:
        """Append a row: for each name a value or None, and whether the cell is empty (other text is not NaN)."""
        self._steps.append(step)
        self._times.append(time)
        self._lines.append(line)
        for column, value in zip(self._cells, values, strict=True):
            column.append(value)
        for blanks, is_empty in zip(self._empty, empty, strict=True):
            blanks.append(is_empty)

    def columns(self) -> dict[str, Column]:
        """The logged points of each metric, NaN where an empty cell stands for it.

        Raises InputError where it would take too long to tell.
        """
        filled = np.array([[cell is not None for cell in column] for column in self._cells], dtype=bool)
        result: dict[str, Column] = {}
        missing = _missing(filled)
        for i, name in enumerate(self._names):
            undefined = missing[filled[i].tobytes()] & np.array(self._empty[i], dtype=bool)
            if undefined.any():
                undefined = self._at_own_pace(filled[i], undefined)
                undefined = _without_outlived(undefined, self._witness(self._roles[i], filled))
            points = Column()
            for row in np.flatnonzero(filled[i] | undefined):
                value = float("nan") if undefined[row] else self._cells[i][row]
                points.add(self._steps[row], value, self._times[row], self._lines[row])
            if points.values:
                result[name] = points
        return result

    @cached_property
    def _roles(self) -> list[Role]:
        """The role of each total; layers have none here."""
        namings = [name_metric(name) for name in self._names]
        return [naming.role if naming.layer is None else Role.OTHER for naming in namings]

    def _witness(self, role: Role, filled: _Mask) -> _Mask | None:
        """The rows on which a metric has a number that could not have one were this role NaN for long."""
        if (other := _WITNESS.get(role)) is None:
            return None
        beside = [one is other for one in self._roles]
        return np.asarray(filled[beside].any(axis=0)) if any(beside) else None

    def _at_own_pace(self, filled: _Mask, undefined: _Mask) -> _Mask:
        """Which empty cells lie on rows that come at the column's own pace: on others they are not logged.

        Of a loss that is evaluated every fifty steps those on the rows between are no NaN, nor are those of a norm that
        was logged at every step, where only evaluations go on.
        """
        after = undefined.copy()
        after[: int(np.flatnonzero(filled)[-1]) + 1] = False
        own, between, later = (self._gap(mask) for mask in (filled, undefined & ~after, after))
        kept = undefined.copy()
        if own is not None and between is not None and own > _PACE * between:
            kept &= after
        if own is not None and later is not None and later > _PACE * own:
            kept &= ~after
        return kept

    def _gap(self, rows: _Mask) -> float | None:
        """Steps from one of these rows to the next, median; None for fewer than two rows with a step."""
        steps = [step for step, chosen in zip(self._steps, rows, strict=True) if chosen and step is not None]
        return max(1.0, float(np.median(np.diff(steps)))) if len(steps) > 1 else None


def _without_outlived(undefined: _Mask, witness: _Mask | None) -> _Mask:
    """The empty cells without the stretches over which the witness has a number: a norm that is NaN makes the weights
    NaN, and with them the loss, unless the update is skipped, which happens a few times on end.
    """
    if witness is None:
        return undefined
    edges = np.flatnonzero(np.diff(np.concatenate([[False], undefined, [False]]).astype(np.int8)))
    kept = undefined.copy()
    for first, stop in edges.reshape(-1, 2):
        if stop - first > _SKIPPED_ON_END and witness[first:stop].all():
            kept[first:stop] = False
    return kept


def _missing(filled: _Mask) -> dict[bytes, _Mask]:
    """`undefined_cells` of every pattern of filled cells: the thousands of columns of a table have a handful."""
    patterns = np.array(list({row.tobytes(): row for row in filled}.values()), dtype=bool)
    if patterns.size * len(patterns) > _MOST_CELLS:
        raise InputError(f"{len(patterns):,} columns with different empty cells cannot be told from NaN in good time")
    return {row.tobytes(): undefined_cells(patterns, i) for i, row in enumerate(patterns)}


def undefined_cells(filled: _Mask, column: int) -> _Mask:
    """Which empty cells of a column stand for NaN. `filled` has one row a column of the table."""
    own = filled[column]
    if own.all() or not own.any():
        return np.zeros_like(own)
    beside = (filled & own).any(axis=1)  # columns that are logged on rows of this one
    empty = ~filled.any(axis=0)
    kind: _Mask = ~filled[~beside].any(axis=0) & ~empty
    if filled.all(axis=0).any():  # some row has every column, so there is one kind of row: an empty one is all NaN
        kind |= empty
    seen = own[kind]
    followed = seen[1:][seen[:-1]]
    dense = float(seen.mean()) > _DENSE or (bool(followed.size) and float(followed.mean()) >= _DENSE)
    broken_off = bool(seen[: int(seen.sum())].all())  # filled up to some row, and never again
    return kind & ~own if dense or broken_off else np.zeros_like(own)
