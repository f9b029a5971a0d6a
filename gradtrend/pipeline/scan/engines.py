"""Who reads and judges the runs of a scan: processes of this machine, or any executor of `concurrent.futures`."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from gradtrend.errors import ConfigError, GradtrendError
from gradtrend.ingest import RunFiles
from gradtrend.model.many.record import Record
from gradtrend.model.report import Failure
from gradtrend.pipeline.analyze import Plan
from gradtrend.pipeline.apart import Outcome, each_apart, seconds_of
from gradtrend.pipeline.failures import each_log
from gradtrend.pipeline.parallel import available_processes
from gradtrend.pipeline.scan.record import record_on
from gradtrend.pipeline.workers import may_fork
from gradtrend.version import __version__

Job = RunFiles | Failure
Told = Callable[[int, Outcome[Record]], None]  # the place of a job, and what came of it
Engine = Callable[[Plan, Sequence[Job], Told], None]

# What is sent to a worker at a time. A scheduler takes about a millisecond a piece of work; of a worker that is lost
# no more than this is done again.
_SECONDS_A_BATCH = 1.0
_JOBS_A_BATCH = 64
_MOST_WAITING = 256  # batches that are handed out at a time: more fill the memory of a scheduler, fewer starve workers


def here(processes: int | None) -> Engine:
    """So many processes of this machine. With None one a core where this process can be copied, else this one alone: a
    new process would run the script of a program once more, all of it where it has no guard.
    """

    def run(plan: Plan, jobs: Sequence[Job], told: Told) -> None:
        by_itself = available_processes() if processes is None and may_fork() else 0
        count = by_itself if processes is None else processes
        each_apart(jobs, plan.options, partial(record_on, plan), count, told)

    return run


def elsewhere(executor: Executor) -> Engine:
    """An executor, wherever its workers are: they must have gradtrend of this version, and see the logs by the same
    paths. What it does about workers that are lost is its own; what it gives up is tried once more run by run.

    Raises `ConfigError` where its workers cannot do the work at all, or are copies of a process with threads.
    """
    if isinstance(executor, ProcessPoolExecutor) and _copies(executor) and not may_fork():
        how = 'ProcessPoolExecutor(..., mp_context=multiprocessing.get_context("spawn"))'
        raise ConfigError("the pool's processes would be copies of this one, which has threads, and could hang", how)
    return partial(_run_by, executor)


def _copies(pool: ProcessPoolExecutor) -> bool:
    context = getattr(pool, "_mp_context", None)
    return context is not None and context.get_start_method() == "fork"


@dataclass(frozen=True, slots=True)
class _Batch:
    places: tuple[int, ...]
    again: bool = False


def _run_by(executor: Executor, plan: Plan, jobs: Sequence[Job], told: Told) -> None:
    packed = pickle.dumps(_sendable(plan))
    todo = deque(_batches(jobs))
    for place, job in enumerate(jobs):
        if isinstance(job, Failure) or job.is_stream:  # nothing to do, or only here
            told(place, each_log(job, plan.options, partial(record_on, plan)))
    given: dict[Future[list[Outcome[Record]]], _Batch] = {}
    try:
        while todo or given:
            while todo and len(given) < _MOST_WAITING:
                batch = todo.popleft()
                given[_submitted(executor, packed, [jobs[place] for place in batch.places])] = batch
            for future in wait(given, return_when=FIRST_COMPLETED).done:
                batch = given.pop(future)
                outcomes = _outcomes(future)
                if isinstance(outcomes, list):
                    _tell(told, batch, outcomes)
                elif batch.again:
                    told(batch.places[0], ([], [_lost(jobs[batch.places[0]], outcomes)]))
                else:
                    todo.extend(_Batch((place,), again=True) for place in batch.places)
    except GradtrendError:  # nothing more is to be had, but what is done
        for future, batch in given.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                _tell(told, batch, future.result())
        raise
    finally:
        for future in given:
            future.cancel()


def _tell(told: Told, batch: _Batch, outcomes: Sequence[Outcome[Record]]) -> None:
    for place, outcome in zip(batch.places, outcomes, strict=True):
        told(place, outcome)


def _sendable(plan: Plan) -> Plan:
    """The plan without what only this process has; the rules themselves are in it."""
    return replace(plan, options=replace(plan.options, announce=None, rules_dir=None))


def _batches(jobs: Sequence[Job]) -> Iterator[_Batch]:
    places: list[int] = []
    seconds = 0.0
    for place, job in enumerate(jobs):
        if isinstance(job, Failure) or job.is_stream:
            continue
        places.append(place)
        seconds += seconds_of(job)
        if seconds >= _SECONDS_A_BATCH or len(places) >= _JOBS_A_BATCH:
            yield _Batch(tuple(places))
            places, seconds = [], 0.0
    if places:
        yield _Batch(tuple(places))


def _submitted(executor: Executor, packed: bytes, jobs: Sequence[Job]) -> Future[list[Outcome[Record]]]:
    try:
        return executor.submit(judge_batch, __version__, packed, jobs)
    except (BrokenExecutor, RuntimeError) as error:  # the second of one that was shut down
        raise _broken(error) from error


def _outcomes(future: Future[list[Outcome[Record]]]) -> list[Outcome[Record]] | BaseException:
    """What came of a batch, or why nothing did. Raises `ConfigError` where nothing ever will."""
    try:
        return future.result()
    except GradtrendError:
        raise
    except (BrokenExecutor, CancelledError) as error:
        raise _broken(error) from error
    except ImportError as error:  # of the work itself: a log's are told as its own
        raise ConfigError(
            f"the executor's workers cannot load gradtrend ({error})", "Install this version of it where they run."
        ) from error
    except Exception as error:
        return error


def _broken(error: BaseException) -> GradtrendError:
    what = str(error) or type(error).__name__
    return GradtrendError(f"the executor does no more work: {what}", "What was judged is kept in --state, if given.")


def _lost(job: Job, error: BaseException) -> Failure:
    name = job.name if isinstance(job, RunFiles) else job.path
    return Failure(name, f"the worker that read it was lost: {type(error).__name__}: {error}", passing=True)


def judge_batch(version: str, packed: bytes, jobs: Sequence[Job]) -> list[Outcome[Record]]:
    """A worker's part: the records of some jobs, by a packed plan. Raises `ConfigError` in one of another version."""
    if version != __version__:
        raise ConfigError(
            f"a worker has gradtrend {__version__}, this process has {version}", "Install the same one everywhere."
        )
    plan = _unpacked(packed)
    return [each_log(job, plan.options, partial(record_on, plan)) for job in jobs]


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Plan:
    plan: Plan = pickle.loads(packed)
    return plan
