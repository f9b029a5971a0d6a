"""Runs read and used so that none of several can lose the others, whatever becomes of the process that reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from gradtrend.ingest import RunFiles, home_of, localized, shown_path
from gradtrend.model.report import Failure
from gradtrend.model.runlog import RunLog
from gradtrend.pipeline import parallel
from gradtrend.pipeline.failures import each_log, failure_of, is_no_ones
from gradtrend.pipeline.memory import memory_limit
from gradtrend.pipeline.parallel import Lost
from gradtrend.pipeline.runs import AnalyzeOptions, runs_in

_T = TypeVar("_T")
Outcome = tuple[list[_T], list[Failure]]

# Measured on one core: a run of 1,000 steps, and JSON lines beyond that. It decides only on how many processes.
_SECONDS_A_RUN = 0.008
_BYTES_A_SECOND = 50e6


def each_apart(
    jobs: Sequence[RunFiles | Failure],
    options: AnalyzeOptions,
    use: Callable[[RunLog], _T],
    processes: int,
    heard: Callable[[int, Outcome[_T]], None] | None = None,
) -> list[Outcome[_T]]:
    """The use of each run of each job, in order. With `processes`, several runs are read by so many others at most, and
    what kills these is a failure; one run alone is read here, unless memory is limited, and with 0 all are. `heard` is
    given each outcome with the place of its job as soon as it is there.
    """
    processes = processes if may_be_several(jobs) or memory_limit() is not None else 0
    seconds = sum(seconds_of(job) for job in jobs if isinstance(job, RunFiles))
    streams = [place for place, job in enumerate(jobs) if isinstance(job, RunFiles) and job.is_stream]
    quiet = not options.replay  # what a captured model prints is shown
    work = partial(_used, options, use)
    told: set[int] = set()

    def tell(place: int, outcome: Outcome[_T] | Lost) -> None:
        if heard is not None and not isinstance(outcome, Lost) and _whole(jobs[place], outcome) is None:
            told.add(place)
            heard(place, outcome)

    settled = []
    for place, outcome in enumerate(parallel.in_order(work, jobs, seconds, processes, streams, quiet, tell)):
        settled.append(_settled(jobs[place], outcome, options, work, min(processes, 1)))
        if heard is not None and place not in told:
            heard(place, settled[-1])
    return settled


def may_be_several(jobs: Sequence[RunFiles | Failure]) -> bool:
    """Whether there may be several runs: by their places, and by two logs of one format beside each other."""
    runs = [job for job in jobs if isinstance(job, RunFiles)]
    if len(runs) != 1:
        return len(runs) > 1
    (run,) = runs
    formats = {log.adapter.name for log in run.logs}
    homes = {home_of(log.path.parent, run.folder) for log in run.logs if log.path != run.folder}
    return len(homes) > 1 or len(formats) < len(run.logs)


def _used(options: AnalyzeOptions, use: Callable[[RunLog], _T], job: RunFiles | Failure) -> Outcome[_T]:
    return each_log(job, options, use)


def _settled(
    job: RunFiles | Failure,
    outcome: Outcome[_T] | Lost,
    options: AnalyzeOptions,
    work: Callable[[RunFiles | Failure], Outcome[_T]],
    processes: int,
) -> Outcome[_T]:
    """The outcome; of logs that were read together and brought about none, that of those which alone do not either,
    and why the others could not be read.
    """
    whole = _whole(job, outcome)
    if whole is None:
        assert not isinstance(outcome, Lost)
        return outcome
    assert isinstance(job, RunFiles)  # what a failure is made of brings about no other
    if len(job.logs) < 2:
        return [], [whole]
    alone = [replace(job, logs=(log,), with_debug=(), passed_over=()) for log in job.logs]
    read = parallel.in_order(partial(_read, options), alone, 0, processes)
    failures = [
        Failure(shown_path(job, log.path), one.reason, passing=True) if isinstance(one, Lost) else one
        for log, one in zip(job.logs, read, strict=True)
        if one is not None
    ]
    left = tuple(log for log, one in zip(job.logs, read, strict=True) if one is None)
    if not failures or not left:
        return [], failures or [whole]
    (again,) = parallel.in_order(work, [replace(job, logs=left)], 0, processes)
    reports, others = ([], [Failure(job.name, again.reason, passing=True)]) if isinstance(again, Lost) else again
    return reports, [*others, *failures]


def _whole(job: RunFiles | Failure, outcome: Outcome[_T] | Lost) -> Failure | None:
    """Why nothing came of a job, where that was no error of a log, which would have been told as the log's own."""
    if isinstance(outcome, Lost):
        return Failure(job.name if isinstance(job, RunFiles) else job.path, outcome.reason, passing=True)
    reports, failures = outcome
    if isinstance(job, Failure) or reports or len(failures) != 1 or failures[0].path != job.name:
        return None
    return failures[0] if is_no_ones(failures[0]) else None


def _read(options: AnalyzeOptions, job: RunFiles) -> Failure | None:
    """Read one log alone: why it cannot be, where no reader says so. That is told where all are read."""
    failure = failure_of(shown_path(job, job.logs[0].path), options, partial(_runs_at_hand, job, options))
    return failure if failure is not None and is_no_ones(failure) else None


def _runs_at_hand(job: RunFiles, options: AnalyzeOptions) -> None:
    with localized(job) as local:
        runs_in(local.files, options)


def seconds_of(run: RunFiles) -> float:
    """About how long a run takes. What a store's folder holds is not worth finding out."""
    try:
        size = sum(log.path.stat().st_size for log in run.logs)
    except OSError:  # gone, or an address
        size = 0
    return _SECONDS_A_RUN + size / _BYTES_A_SECOND
