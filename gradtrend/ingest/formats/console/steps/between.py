"""Rows without a step between rows that have one: the norm on a line of its own, a loss that is printed twice.

`Epoch 3, batch 50, loss[...]` beside `grad-norm quartiles ...`; Caffe's `Iteration 100, loss = 2.1` and below it `Train
net output #0: loss = 2.1`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gradtrend.ingest.reading.counters import UNKNOWN, Ints

_FEWEST = 2  # rows with a step, between which others can be placed

Mask = npt.NDArray[np.bool_]


def printed_again(steps: Ints, metric: Ints, value: npt.NDArray[np.float64], row: Ints) -> Mask:
    """(rows,) which rows have no step and only repeat what each of their metrics was last on a row that has one."""
    order = np.lexsort((row, metric))
    ordered = value[order]
    same = (ordered[1:] == ordered[:-1]) | (np.isnan(ordered[1:]) & np.isnan(ordered[:-1]))
    again = np.zeros(len(value), dtype=bool)
    again[order[1:]] = same & (metric[order][1:] == metric[order][:-1])
    again &= np.isin(metric, np.unique(metric[steps[row] != UNKNOWN]))
    values, repeated = (np.bincount(rows, minlength=len(steps)) for rows in (row, row[again]))
    all_again: Mask = (steps == UNKNOWN) & (values > 0) & (repeated == values)
    return all_again


def with_neighbours_steps(steps: Ints, metric: Ints, row: Ints) -> Ints:
    """(rows,) the steps, with those rows placed that have none and log what no row with a step does.

    They belong to the row before them; where the log begins with one of them, to the row behind. Several between two
    rows stand at even distances.
    """
    placed = steps != UNKNOWN
    if placed.all() or int(placed.sum()) < _FEWEST:
        return steps
    foreign = _foreign_rows(placed, metric, row)
    if not foreign.any():
        return steps
    result = steps.copy()
    anchors = np.flatnonzero(placed)
    ahead = bool(np.flatnonzero(foreign)[0] < anchors[0])
    gap = np.searchsorted(anchors, np.flatnonzero(foreign))
    for between in np.unique(gap).tolist():
        rows = np.flatnonzero(foreign)[gap == between]
        result[rows] = _spread(steps[anchors], between, len(rows), ahead)
    return result


def _foreign_rows(placed: Mask, metric: Ints, row: Ints) -> Mask:
    """Which rows have no step and none of the metrics of the rows that have one."""
    known = np.unique(metric[placed[row]])
    mixed = np.zeros(len(placed), dtype=bool)
    mixed[row[np.isin(metric, known)]] = True
    holds = np.zeros(len(placed), dtype=bool)
    holds[row] = True
    return ~placed & ~mixed & holds


def _spread(anchors: Ints, between: int, count: int, ahead: bool) -> Ints:
    """The steps of `count` rows that lie ahead of the anchor of that index (and behind the one before it)."""
    apart = np.diff(anchors)
    pace = int(np.median(apart[apart > 0])) if (apart > 0).any() else 1
    low = int(anchors[between - 1]) if between else int(anchors[0]) - pace
    high = int(anchors[between]) if between < len(anchors) else int(anchors[-1]) + pace
    if ahead:
        behind = np.arange(count - 1, -1, -1, dtype=np.int64)
        return np.asarray(high - ((high - low) * behind) // max(1, count))
    return np.asarray(low + ((high - low) * np.arange(count, dtype=np.int64)) // max(1, count))
