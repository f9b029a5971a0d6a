"""Runs and their logs with failures in place of exceptions: one run that fails loses none of the others."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from gradtrend.errors import ConfigError, GradtrendError, InputError
from gradtrend.ingest import (
    Known,
    Listing,
    Local,
    RunFiles,
    RunParts,
    adapters_of,
    find_runs,
    is_remote,
    listed_below,
    listing_of,
    localized,
    shown_address,
)
from gradtrend.model.report import Failure
from gradtrend.model.runlog import RunLog
from gradtrend.pipeline.memory import NO_MEMORY, TOO_DEEP, lacks_memory
from gradtrend.pipeline.parallel import Lost, in_order
from gradtrend.pipeline.runs import AnalyzeOptions, log_of, runs_in, whose_bug
from gradtrend.pipeline.workers import may_fork
from gradtrend.temporary import new_folder

_T = TypeVar("_T")
_R = TypeVar("_R")


def found_runs(path: str, options: AnalyzeOptions, known: Known | None = None) -> Sequence[RunFiles | Failure]:
    """The runs at a path, or the one failure to find any; `known` is what was found out of its files before.

    Raises `ConfigError` for a source that there is not.
    """
    adapters_of(options.format)
    failures: list[Failure] = []
    shown = shown_address(path, options.format)
    return _guarded(shown, options, partial(_found, path, options, known), failures) or failures


def _found(path: str, options: AnalyzeOptions, known: Known | None) -> Sequence[RunFiles]:
    if not is_remote(path, options.format):
        return find_runs(path, options.format, options.wanted, options.names, known)
    if options.replay:
        raise not_here(path)
    # By a copy of this process, where that is sound: the threads of a client would keep this one from being copied for
    # the runs, and the mirror is this one's, as it outlives the copy.
    found, heard = _by_a_copy(partial(_found_in, new_folder(), options, known), path, options)
    for file in heard:
        assert known is not None
        known.heard(*file)
    return found


def _by_a_copy(work: Callable[[str], _R], path: str, options: AnalyzeOptions) -> _R:
    (found,) = in_order(work, [path], 0, 1 if may_fork() else 0)
    if isinstance(found, Lost):
        raise InputError(f"{shown_address(path, options.format)}: {found.reason}")
    return found


def _found_in(
    room: Path, options: AnalyzeOptions, known: Known | None, path: str
) -> tuple[Sequence[RunFiles], Sequence[tuple[str, int, int, str]]]:
    """The runs at a remote place, and what was found out of its files."""
    heard: list[tuple[str, int, int, str]] = []
    noted = None if known is None else replace(known, heard=lambda *file: heard.append(file))
    return find_runs(path, options.format, options.wanted, options.names, noted, room), heard


def listing_at(path: str, options: AnalyzeOptions, leave_out: frozenset[str]) -> Listing | None:
    """The files at a path as they are, without a look into any; None where that says nothing: of a server, of a pipe,
    and of what cannot be listed, which is told where runs are looked for.
    """
    try:
        if not is_remote(path, options.format):
            return listing_of(path, leave_out)
        return _by_a_copy(partial(_listed, options), path, options)
    except InputError:
        return None


def _listed(options: AnalyzeOptions, path: str) -> Listing | None:
    return listed_below(path, options.format)


def not_here(path: str) -> InputError:
    """The error for captured steps of a remote place that are to be replayed."""
    what = "captured steps are replayed from a folder of this machine"
    return InputError(f"{shown_address(path)}: {what}", "Copy the run here first, and give that folder.")


def each_log(
    job: RunFiles | Failure, options: AnalyzeOptions, use: Callable[[RunLog], _T]
) -> tuple[list[_T], list[Failure]]:
    """The use of each run of some logs that are read together."""
    if isinstance(job, Failure):
        return [], [job]
    results: list[_T] = []
    failures: list[Failure] = []
    _guarded(job.name, options, partial(_each_at_hand, job, options, use, results, failures), failures)
    return results, failures


def _each_at_hand(
    job: RunFiles, options: AnalyzeOptions, use: Callable[[RunLog], _T], results: list[_T], failures: list[Failure]
) -> None:
    """Add the uses of the runs of some logs, which are fetched for that long, and what fails."""
    with localized(job) as local:
        files, late = _without_late(local.files)
        found: Sequence[RunParts] = ()
        if files.logs or not late:
            found = _guarded(files.name, options, partial(runs_in, files, options), failures) or ()
        failures += late
        for run in found:
            work = lambda run=run: use(local.told_log(log_of(run, options)))  # noqa: E731
            result = _guarded(run.name, options, work, failures)
            if result is not None:
                results.append(result)
        failures[:] = [_told(failure, local) for failure in failures]


def _without_late(files: RunFiles) -> tuple[RunFiles, list[Failure]]:
    """A share as it could be fetched, and what of it could not: each a failure of its own beside the runs, so that
    nobody takes them for all that there is.
    """
    late = [one for one in files.passed_over if one.passing and one.unread]
    if not late:
        return files, []
    passed = tuple(one for one in files.passed_over if one not in late)
    failures = [Failure(str(one.path), f"{one.path}: {one.reason}", "Try again later.", passing=True) for one in late]
    return replace(files, passed_over=passed), failures


def _told(failure: Failure, local: Local) -> Failure:
    """A failure in the words of the address at which the logs lie."""
    hint, bug = (None if text is None else local.told(text) for text in (failure.hint, failure.bug))
    return replace(failure, path=local.told(failure.path), message=local.told(failure.message), hint=hint, bug=bug)


def failure_of(name: str, options: AnalyzeOptions, work: Callable[[], object]) -> Failure | None:
    """Why some work cannot be done, None where it can. Raises `ConfigError`."""
    failures: list[Failure] = []
    _guarded(name, options, work, failures)
    return next(iter(failures), None)


def is_no_ones(failure: Failure) -> bool:
    """Whether a failure is none that a reader of logs told: a bug, or for want of memory."""
    return failure.bug is not None or failure.message in (NO_MEMORY, TOO_DEEP)


def _guarded(name: str, options: AnalyzeOptions, work: Callable[[], _R], failures: list[Failure]) -> _R | None:
    """The outcome of some work on one run, or None and a failure more."""
    try:
        return work()
    except ConfigError:
        raise
    except GradtrendError as error:
        failures.append(Failure(name, error.message, error.hint, passing=_is_of_this_moment(error)))
    except RecursionError:
        failures.append(Failure(name, TOO_DEEP, passing=True))
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a bug: reported as one; panics of polars are no `Exception`
        no_memory = lacks_memory(error)
        failures.append(
            Failure(name, NO_MEMORY, passing=True) if no_memory else _bug(name, error, whose_bug(options.source))
        )
    return None


def _is_of_this_moment(error: GradtrendError) -> bool:
    """Whether a system failed to read, and not a log to make sense: what decompressors raise has no number. Of who may
    read a file its state tells when it changes.
    """
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno is not None and not isinstance(cause, PermissionError)


def _bug(path: str, error: BaseException, whose: str) -> Failure:
    return Failure(
        path,
        f"internal error: {type(error).__name__}: {error}",
        f"This is a bug in {whose}; please report it with the output of --debug.",
        bug=traceback.format_exc(),
        passing=True,
    )
