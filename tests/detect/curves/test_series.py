"""The table of a run as series."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from gradtrend.detect.curves.series import series_of
from gradtrend.model.runlog import RunLog
from tests.detect.runs import log_of


def shown(log: RunLog) -> list[tuple[str, list[int], list[float]]]:
    return [(series.metric, series.steps.tolist(), series.values.tolist()) for series in series_of(log)]


def test_rows_of_several_series_may_be_mixed() -> None:
    log = log_of([1.0, 2.0, 3.0, 4.0], loss=[4.0, 3.0, 2.0, 1.0])
    mixed = replace(log, table=log.table.sort("step", maintain_order=True))
    assert mixed.table["series"].to_list() != log.table["series"].to_list()
    assert shown(mixed) == shown(log)
    assert len(shown(log)) == 2


def test_a_table_in_many_pieces() -> None:
    log = log_of([1.0, 2.0, 3.0, 4.0], loss=[4.0, 3.0, 2.0, 1.0])
    pieces = pl.concat([log.table.slice(row, 1) for row in range(log.table.height)], rechunk=False)
    assert shown(replace(log, table=pieces)) == shown(log)
