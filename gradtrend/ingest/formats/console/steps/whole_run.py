"""The steps of a console log's rows, over the whole run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gradtrend.ingest.formats.console.rows import ConsoleRows
from gradtrend.ingest.formats.console.steps.abbreviated import whole_counts
from gradtrend.ingest.formats.console.steps.between import printed_again, with_neighbours_steps
from gradtrend.ingest.reading.counters import UNKNOWN, Ints, whole_run_steps

_FEW = 2  # lines that may well be of one step
_UNPLACED = 0.5  # above this share of lines without a step, the few that have one are read as rows, too

Mask = npt.NDArray[np.bool_]


class RowSteps(NamedTuple):
    """(rows,) each row's step, UNKNOWN in all where the log gives none; `again` are rows that repeat the one before
    them, `lost` are others without a step where most have one.
    """

    steps: Ints
    again: Mask
    lost: Mask


def steps_of(rows: ConsoleRows) -> RowSteps:
    """The steps of all rows; there must be a value."""
    metric, row = (np.frombuffer(column, dtype=np.intc).astype(np.int64) for column in (rows.metric, rows.row))
    steps = _counted(rows)
    again = np.zeros(len(steps), dtype=bool)
    if (steps == UNKNOWN).any() and not (steps == UNKNOWN).all():
        again = printed_again(steps, metric, np.frombuffer(rows.value), row)
        steps = with_neighbours_steps(steps, metric, row)
    lost = (steps == UNKNOWN) & ~again
    if lost.sum() > _UNPLACED * (~again).sum():
        return RowSteps(np.full_like(steps, UNKNOWN), np.zeros_like(again), np.zeros_like(lost))
    return RowSteps(steps, again, lost)


def _counted(rows: ConsoleRows) -> Ints:
    """Each row's step by its own counters (UNKNOWN for none)."""
    epoch, counter, total = (np.frombuffer(column, dtype=np.int64) for column in (rows.epoch, rows.counter, rows.total))
    if _is_constant(counter) and (total == UNKNOWN).all():
        # A process id or a line number in the place of a step, or a batch size behind it.
        counter = epoch if (epoch != UNKNOWN).all() else np.full_like(counter, UNKNOWN)
    if _is_epoch_and_batch(counter, total):
        epoch, counter, total = counter, total, np.full_like(total, UNKNOWN)
    counter = whole_counts(counter, np.frombuffer(rows.rounding, dtype=np.intc))
    certain = rows.in_epoch
    if _are_ended_bars(rows, epoch, counter, total):
        epoch, certain = _lines_counted(rows), True
    steps = whole_run_steps(epoch, counter, total, certain, rows.zero_based, any(rows.bar))
    if (steps == UNKNOWN).mean() > _UNPLACED and not rows.in_epoch:
        by_epoch = np.where(counter == UNKNOWN, epoch, counter)
        if (by_epoch == UNKNOWN).mean() <= _UNPLACED and (counter == UNKNOWN).mean() > _UNPLACED:
            steps = np.where(counter == UNKNOWN, epoch, UNKNOWN)
    if rows.from_one:  # this format alone counts from 1 where the run's other logs count from 0
        steps = np.where(steps > 0, steps - 1, steps)
    return steps


def _is_constant(counter: Ints) -> bool:
    return len(counter) > _FEW and counter[0] != UNKNOWN and bool((counter == counter[0]).all())


def _are_ended_bars(rows: ConsoleRows, epoch: Ints, counter: Ints, total: Ints) -> bool:
    """Whether all rows are bars at their end, n of the same n, on several lines and without an epoch: one an epoch."""
    return (
        all(rows.bar)
        and len(set(rows.line)) > _FEW
        and bool((epoch == UNKNOWN).all() and (counter == total).all() and (total == total[0]).all())
        and int(total[0]) > 0
    )


def _lines_counted(rows: ConsoleRows) -> Ints:
    """(rows,) the index of each row's line among the lines with rows; a bar that is drawn again stays on its line."""
    return np.unique(np.frombuffer(rows.line, dtype=np.int64), return_inverse=True)[1].astype(np.int64)


def _is_epoch_and_batch(counter: Ints, total: Ints) -> bool:
    """Whether `2/4000, 2/4100, 2/4200` counts batches of an epoch, and not steps of a total: the second number goes on
    where the first stands still.
    """
    given = (counter != UNKNOWN) & (total != UNKNOWN)
    first, second = np.diff(counter[given]), np.diff(total[given])
    moved = (first != 0) | (second != 0)
    return bool(moved.any()) and float(((first == 0) & (second > 0))[moved].mean()) > 0.5
