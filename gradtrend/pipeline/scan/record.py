"""A run as read and judged -> what a scan keeps of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gradtrend.ingest import RunFiles, shown_path, size_and_time
from gradtrend.model.many.record import Record
from gradtrend.model.report import Failure
from gradtrend.model.runlog import RunLog
from gradtrend.pipeline.analyze import Plan, report_on
from gradtrend.report.json.records import record_of, record_of_failure

_DIGITS = 6  # of a second, as texts of times have: so that a record that was kept is the same


def record_on(plan: Plan, log: RunLog) -> Record:
    """The record of a run."""
    size, modified = _in_all((source.size, source.modified) for source in log.sources)
    return replace(record_of(report_on(plan, log)), size=size, modified=modified, hyperparameters=log.hyperparameters)


def record_of_lost(job: RunFiles | Failure, failure: Failure) -> Record:
    """What is kept of a run that could not be read, or of logs of which nobody knows whose they are."""
    record = record_of_failure(failure)
    if isinstance(job, Failure):
        return record
    own = [log.path for log in job.logs if shown_path(job, log.path) == failure.path]
    size, modified = _in_all(map(size_and_time, own or [log.path for log in job.logs]))
    return replace(record, size=size, modified=modified)


def _in_all(logs: Iterable[tuple[int | None, float | None]]) -> tuple[int | None, float | None]:
    """The bytes of some logs in all, and the newest of their times; None where none is a file."""
    known = [(size, time) for size, time in logs if size is not None and time is not None]
    if not known:
        return None, None
    sizes, times = zip(*known, strict=True)
    return sum(sizes), round(max(times), _DIGITS)
