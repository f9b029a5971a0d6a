"""Runs and their logs with failures in place of exceptions: one run that fails loses none of the others."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from gradtrend.errors import ConfigError, GradtrendError
from gradtrend.ingest import RunFiles, adapters_of, find_runs
from gradtrend.model.report import Failure
from gradtrend.model.runlog import RunLog
from gradtrend.pipeline.runs import AnalyzeOptions, logs_of, whose_bug

_T = TypeVar("_T")
_R = TypeVar("_R")


def found_runs(path: str, options: AnalyzeOptions) -> Sequence[RunFiles | Failure]:
    """The runs at a path, or the one failure to find any. Raises `ConfigError` for a source that there is not."""
    adapters_of(options.format)
    failures: list[Failure] = []
    return _guarded(path, options, lambda: find_runs(path, options.format, options.names), failures) or failures


def each_log(
    job: RunFiles | Failure, options: AnalyzeOptions, use: Callable[[RunLog], _T]
) -> tuple[list[_T], list[Failure]]:
    """The use of each log of one run folder."""
    if isinstance(job, Failure):
        return [], [job]
    results: list[_T] = []
    failures: list[Failure] = []
    for log in _guarded(job.name, options, lambda: logs_of(job, options), failures) or ():
        result = _guarded(log.run, options, partial(use, log), failures)
        if result is not None:
            results.append(result)
    return results, failures


def _guarded(name: str, options: AnalyzeOptions, work: Callable[[], _R], failures: list[Failure]) -> _R | None:
    """The outcome of some work on one run, or None and a failure more."""
    try:
        return work()
    except ConfigError:
        raise
    except GradtrendError as error:
        failures.append(Failure(name, error.message, error.hint))
    except Exception as error:  # a bug: reported as one
        failures.append(_bug(name, error, whose_bug(options.source)))
    return None


def _bug(path: str, error: Exception, whose: str) -> Failure:
    return Failure(
        path,
        f"internal error: {type(error).__name__}: {error}",
        f"This is a bug in {whose}; please report it with the output of --debug.",
        bug=traceback.format_exc(),
    )
