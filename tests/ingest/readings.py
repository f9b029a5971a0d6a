"""What a reader gives, for tests: the one reading of a path, a reading as one table, and the runs at a path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import polars as pl

from gradtrend.ingest.reading import POINTS_SCHEMA, Reading, ReadOptions
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns, chosen
from gradtrend.ingest.runs.finding.find import find_runs
from gradtrend.ingest.runs.load import load_run
from gradtrend.ingest.runs.parts import Choice, RunParts
from gradtrend.ingest.runs.read import read_runs
from gradtrend.model.runlog import RunLog

SCHEMA = pl.Schema({"metric": pl.String, **POINTS_SCHEMA})

Read = Callable[[Path, ReadOptions], Sequence[Reading]]


def read_one(read: Read, path: Path, run_id: str | None = None) -> Reading:
    """The one reading that a path holds, or that of one run of a store."""
    run = None if run_id is None else stored_run(read, path, run_id)
    (reading,) = read(path, ReadOptions(run))
    return reading


def stored_run(read: Read, path: Path, run_id: str) -> StoredRun:
    """The run of a store that a word names, by the `runs` of the format that `read` is of."""
    reader = import_module(f"{read.__module__.rpartition('.')[0]}.reader")
    wanted = WantedRuns((run_id,))
    (run,) = chosen(reader.runs(path, wanted), wanted, str(path))
    return run


def long_table(reading: Reading) -> pl.DataFrame:
    """One row a point, one metric after another; holds that each metric has a table as it must."""
    for points in reading.series.values():
        assert points.schema == POINTS_SCHEMA
        assert points.height
    named = (points.select(pl.lit(metric).alias("metric"), pl.all()) for metric, points in reading.series.items())
    return pl.concat([pl.DataFrame(schema=SCHEMA), *named])


def runs_at(path: Path | str, source: str = "auto", run_id: str | None = None, **chosen: str) -> list[RunParts]:
    """The runs at a path, or that of its store which a word names, with the series that a user chose."""
    found = find_runs(str(path), source, WantedRuns(() if run_id is None else (run_id,)))
    return [run for files in found for run in read_runs(files, ReadOptions(), Choice(**chosen))]


def log_at(path: Path | str, run_id: str | None = None, **chosen: str) -> RunLog:
    """The one run at a path as read."""
    (run,) = runs_at(path, run_id=run_id, **chosen)
    return load_run(run, Choice(**chosen))
