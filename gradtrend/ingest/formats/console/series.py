"""The rows of a console log -> its series: steps of the whole run, one rank, a bar's last word at each step."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import polars as pl

from gradtrend.ingest.formats.console.rows import ConsoleRows
from gradtrend.ingest.formats.console.steps.whole_run import steps_of
from gradtrend.ingest.reading.counters import UNKNOWN, Ints
from gradtrend.model.runlog import Note


def series_of_rows(rows: ConsoleRows) -> tuple[dict[str, pl.DataFrame], tuple[Note, ...], list[int]]:
    """The reading's series, notes on what was left out, and the numbers of the lines that have no step where others
    do.
    """
    if not rows.value:
        return {}, (), []
    row = np.frombuffer(rows.row, dtype=np.intc)
    steps, again, lost = steps_of(rows)
    keep, notes = _one_rank(rows, row)
    keep &= ~(lost | again)[row]
    lines = np.frombuffer(rows.line, dtype=np.int64)[lost].tolist()
    return _tables(rows, row, steps, keep), (*notes, *_thinned(rows)), lines


def _tables(
    rows: ConsoleRows, row: npt.NDArray[np.intc], steps: Ints, keep: npt.NDArray[np.bool_]
) -> dict[str, pl.DataFrame]:
    """A table for each metric with the values to keep; `row` says of each value on which line it stands."""
    metric = np.frombuffer(rows.metric, dtype=np.intc)
    order = np.lexsort((row, metric))
    order = order[keep[order]]
    order = order[_settled(metric[order], steps[row[order]], np.frombuffer(rows.bar, dtype=np.int8)[row[order]])]
    points = pl.DataFrame(
        {
            "step": pl.Series(steps[row[order]]),
            "value": pl.Series(np.frombuffer(rows.value)[order]),
            "time": pl.Series([None], dtype=pl.Float64).new_from_index(0, len(order)),
            "line": pl.Series(np.frombuffer(rows.line, dtype=np.int64)[row[order]]),
        }
    ).with_columns(pl.when(pl.col("step") != UNKNOWN).then(pl.col("step")).alias("step"))
    names = list(rows.names)
    edges = [0, *(np.flatnonzero(np.diff(metric[order])) + 1).tolist(), len(order)]
    return {
        names[metric[order[start]]]: points.slice(start, stop - start)
        for start, stop in itertools.pairwise(edges)
        if stop > start
    }


def _thinned(rows: ConsoleRows) -> tuple[Note, ...]:
    if rows.stride == 1:
        return ()
    message = f"the log has {rows.seen:,} lines of values; one in {rows.stride} was read"
    return (Note("thinned", message, measures=(("stride", float(rows.stride)),)),)


def _one_rank(rows: ConsoleRows, row: npt.NDArray[np.intc]) -> tuple[npt.NDArray[np.bool_], tuple[Note, ...]]:
    """Which values to keep so that each line counts once: those of the rank that printed most, the lowest of equals."""
    rank = np.frombuffer(rows.rank, dtype=np.intc)
    ranks, counts = np.unique(rank[rank != UNKNOWN], return_counts=True)
    if len(ranks) < 2:
        return np.ones(len(row), dtype=bool), ()
    chosen = int(ranks[int(counts.argmax())])
    others = "1 other rank" if len(ranks) == 2 else f"{len(ranks) - 1} other ranks"
    message = f"lines of {others} were left out; rank {chosen} was read"
    return (rank[row] == UNKNOWN) | (rank[row] == chosen), (Note("ranks", message),)


def _settled(metric: npt.NDArray[np.intc], step: Ints, bar: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    """Which values are the last that a progress bar showed at their step, and so the step's own."""
    keep = np.ones(len(metric), dtype=bool)
    again = (metric[1:] == metric[:-1]) & (step[1:] == step[:-1]) & (step[1:] != UNKNOWN)
    keep[:-1] = ~(again & (bar[1:] > 0) & (bar[:-1] > 0))
    return keep
