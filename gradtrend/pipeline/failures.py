"""Runs and their logs with failures in place of exceptions: one run that fails loses none of the others."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from gradtrend.errors import ConfigError, GradtrendError
from gradtrend.ingest import Known, RunFiles, RunParts, adapters_of, find_runs
from gradtrend.model.report import Failure
from gradtrend.model.runlog import RunLog
from gradtrend.pipeline.memory import NO_MEMORY, TOO_DEEP, lacks_memory
from gradtrend.pipeline.runs import AnalyzeOptions, log_of, runs_in, whose_bug

_T = TypeVar("_T")
_R = TypeVar("_R")


def found_runs(path: str, options: AnalyzeOptions, known: Known | None = None) -> Sequence[RunFiles | Failure]:
    """The runs at a path, or the one failure to find any; `known` is what was found out of its files before.

    Raises `ConfigError` for a source that there is not.
    """
    adapters_of(options.format)
    failures: list[Failure] = []
    find = lambda: find_runs(path, options.format, options.wanted, options.names, known)  # noqa: E731
    return _guarded(path, options, find, failures) or failures


def each_log(
    job: RunFiles | Failure, options: AnalyzeOptions, use: Callable[[RunLog], _T]
) -> tuple[list[_T], list[Failure]]:
    """The use of each run of some logs that are read together."""
    if isinstance(job, Failure):
        return [], [job]
    results: list[_T] = []
    failures: list[Failure] = []
    for run in _guarded(job.name, options, lambda: runs_in(job, options), failures) or ():
        result = _guarded(run.name, options, partial(_used, use, run, options), failures)
        if result is not None:
            results.append(result)
    return results, failures


def failure_of(name: str, options: AnalyzeOptions, work: Callable[[], object]) -> Failure | None:
    """Why some work cannot be done, None where it can. Raises `ConfigError`."""
    failures: list[Failure] = []
    _guarded(name, options, work, failures)
    return next(iter(failures), None)


def is_no_ones(failure: Failure) -> bool:
    """Whether a failure is none that a reader of logs told: a bug, or for want of memory."""
    return failure.bug is not None or failure.message in (NO_MEMORY, TOO_DEEP)


def _used(use: Callable[[RunLog], _T], run: RunParts, options: AnalyzeOptions) -> _T:
    return use(log_of(run, options))


def _guarded(name: str, options: AnalyzeOptions, work: Callable[[], _R], failures: list[Failure]) -> _R | None:
    """The outcome of some work on one run, or None and a failure more."""
    try:
        return work()
    except ConfigError:
        raise
    except GradtrendError as error:
        failures.append(Failure(name, error.message, error.hint))
    except RecursionError:
        failures.append(Failure(name, TOO_DEEP))
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a bug: reported as one; panics of polars are no `Exception`
        no_memory = lacks_memory(error)
        failures.append(Failure(name, NO_MEMORY) if no_memory else _bug(name, error, whose_bug(options.source)))
    return None


def _bug(path: str, error: BaseException, whose: str) -> Failure:
    return Failure(
        path,
        f"internal error: {type(error).__name__}: {error}",
        f"This is a bug in {whose}; please report it with the output of --debug.",
        bug=traceback.format_exc(),
    )
