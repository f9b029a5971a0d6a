"""A run as read and judged -> what a scan keeps of it."""

from __future__ import annotations

from dataclasses import replace

from gradtrend.model.many.record import Record
from gradtrend.model.runlog import RunLog
from gradtrend.pipeline.analyze import Plan, report_on
from gradtrend.report.json.records import record_of

_DIGITS = 6  # of a second, as texts of times have: so that a record that was kept is the same


def record_on(plan: Plan, log: RunLog) -> Record:
    """The record of a run."""
    size, modified = _size_and_time(log)
    return replace(record_of(report_on(plan, log)), size=size, modified=modified, hyperparameters=log.hyperparameters)


def _size_and_time(log: RunLog) -> tuple[int | None, float | None]:
    """The bytes of the logs of a run in all, and the newest of their times; None for what is no file."""
    if log.folder is None:
        return None, None
    sizes, times = [], []
    for source in log.sources:
        try:
            status = (log.folder / source.path).stat()
        except OSError:
            continue
        sizes.append(status.st_size)
        times.append(status.st_mtime)
    return (sum(sizes), round(max(times), _DIGITS)) if sizes else (None, None)
