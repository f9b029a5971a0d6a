"""Runs read and used so that none of several can lose the others, whatever becomes of the process that reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from gradtrend.ingest import RunFiles, home_of
from gradtrend.model.report import Failure
from gradtrend.model.runlog import RunLog
from gradtrend.pipeline import parallel
from gradtrend.pipeline.failures import each_log
from gradtrend.pipeline.memory import memory_limit
from gradtrend.pipeline.parallel import Lost
from gradtrend.pipeline.runs import AnalyzeOptions, runs_in

_T = TypeVar("_T")
Outcome = tuple[list[_T], list[Failure]]

# Measured on one core: a run of 1,000 steps, and JSON lines beyond that. It decides only on how many processes.
_SECONDS_A_RUN = 0.008
_BYTES_A_SECOND = 50e6


def each_apart(
    jobs: Sequence[RunFiles | Failure], options: AnalyzeOptions, use: Callable[[RunLog], _T], processes: int
) -> list[Outcome[_T]]:
    """The use of each run of each job, in order. With `processes`, several runs are read by so many others at most, and
    what kills these is a failure; one run alone is read here, unless memory is limited, and with 0 all are.
    """
    processes = processes if may_be_several(jobs) or memory_limit() is not None else 0
    seconds = sum(_seconds(job) for job in jobs if isinstance(job, RunFiles))
    streams = [place for place, job in enumerate(jobs) if isinstance(job, RunFiles) and job.is_stream]
    work = partial(_used, options, use)
    quiet = not options.replay  # what a captured model prints is shown
    outcomes = parallel.in_order(work, jobs, seconds, processes, streams, quiet)
    return [
        _without_the_deadly(job, outcome.reason, options, work) if isinstance(outcome, Lost) else outcome
        for job, outcome in zip(jobs, outcomes, strict=True)
    ]


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


def _without_the_deadly(
    job: RunFiles | Failure, reason: str, options: AnalyzeOptions, work: Callable[[RunFiles | Failure], Outcome[_T]]
) -> Outcome[_T]:
    """The runs of logs that were read together and killed their process, without those logs that kill it alone."""
    assert isinstance(job, RunFiles)  # what a failure is made of kills nothing
    if len(job.logs) < 2:
        return [], [Failure(job.name, reason)]
    alone = [replace(job, logs=(log,), with_debug=(), passed_over=()) for log in job.logs]
    read = parallel.in_order(partial(_read, options), alone, 0, 1)
    failures = [
        Failure(str(log.path), outcome.reason)
        for log, outcome in zip(job.logs, read, strict=True)
        if isinstance(outcome, Lost)
    ]
    left = tuple(log for log, outcome in zip(job.logs, read, strict=True) if not isinstance(outcome, Lost))
    if not failures:
        return [], [Failure(job.name, reason)]
    if not left:
        return [], failures
    (outcome,) = parallel.in_order(work, [replace(job, logs=left)], 0, 1)
    return ([], [Failure(job.name, outcome.reason), *failures]) if isinstance(outcome, Lost) else (
        outcome[0], [*outcome[1], *failures]
    )


def _read(options: AnalyzeOptions, job: RunFiles) -> None:
    """Read a log, to see what becomes of it. What can be told of it is told where all are read."""
    try:
        runs_in(job, options)
    except MemoryError:
        raise
    except Exception:
        return


def _seconds(run: RunFiles) -> float:
    """About how long a run takes. What a store's folder holds is not worth finding out."""
    try:
        size = sum(log.path.stat().st_size for log in run.logs)
    except OSError:  # gone, or an address
        size = 0
    return _SECONDS_A_RUN + size / _BYTES_A_SECOND
