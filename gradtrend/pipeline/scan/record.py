"""A run as read and judged -> what a scan keeps of it."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from gradtrend.ingest import RunFiles
from gradtrend.model.many.record import Record
from gradtrend.model.report import Failure
from gradtrend.model.runlog import RunLog
from gradtrend.pipeline.analyze import Plan, report_on
from gradtrend.report.json.records import record_of, record_of_failure

_DIGITS = 6  # of a second, as texts of times have: so that a record that was kept is the same


def record_on(plan: Plan, log: RunLog) -> Record:
    """The record of a run."""
    size, modified = _size_and_time(log)
    return replace(record_of(report_on(plan, log)), size=size, modified=modified, hyperparameters=log.hyperparameters)


def record_of_lost(job: RunFiles | Failure, failure: Failure) -> Record:
    """What is kept of a run that could not be read, or of logs of which nobody knows whose they are."""
    record = record_of_failure(failure)
    if isinstance(job, Failure):
        return record
    size, modified = _size_and_newest(log.path for log in job.logs)
    return replace(record, size=size, modified=modified)


def _size_and_time(log: RunLog) -> tuple[int | None, float | None]:
    if log.folder is None:
        return None, None
    return _size_and_newest(log.folder / source.path for source in log.sources)


def _size_and_newest(logs: Iterable[Path]) -> tuple[int | None, float | None]:
    """The bytes of some logs in all, and the newest of their times; None for what is no file. A folder that is a store
    has other runs in it, and no time of its own: files in it grow and it does not change.
    """
    sizes, times = [], []
    for log in logs:
        try:
            status = log.stat()
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            sizes.append(status.st_size)
            times.append(status.st_mtime)
    return (sum(sizes), round(max(times), _DIGITS)) if sizes else (None, None)
