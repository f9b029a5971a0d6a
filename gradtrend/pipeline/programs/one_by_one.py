"""Reports for a program: of one run, or of each run one after another, with errors raised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from typing import Any, NoReturn, TypeGuard, TypeVar

from gradtrend.errors import ConfigError, InputError
from gradtrend.ingest import Local, RunFiles, RunParts, adapters_of, find_runs, localized, shown_address
from gradtrend.model.runlog import RunLog
from gradtrend.pipeline.analyze import Plan, plan_of, report_on
from gradtrend.pipeline.memory import NO_MEMORY, TOO_DEEP, lacks_memory
from gradtrend.pipeline.programs.judged import JudgedRun, judged
from gradtrend.pipeline.programs.tables import is_table, run_in
from gradtrend.pipeline.runs import AnalyzeOptions, log_of, runs_in

_R = TypeVar("_R")
_SHOWN_RUNS = 10  # named where one run was wanted and several were found


def is_path(thing: object) -> TypeGuard[str | PathLike[str]]:
    """Whether this is one path; else it must be a table. Raises `InputError` for what is neither."""
    if isinstance(thing, str | PathLike):
        return True
    if is_table(thing):
        return False
    several = "Several paths are for analyze_all." if isinstance(thing, Iterable) else None
    raise InputError(f"{thing!r:.80} is neither a path nor a table", several)


def paths_in(thing: object) -> tuple[str, ...] | None:
    """One path or several; None for a table. Raises `InputError` for what is neither."""
    if isinstance(thing, Iterable) and not isinstance(thing, str) and not is_table(thing):
        each = tuple(thing)
        return tuple(fspath(one) for one in each if is_path(one) or _refuse(one))
    return (fspath(thing),) if is_path(thing) else None


def _refuse(table: object) -> bool:
    raise InputError(f"a {type(table).__name__} among several", "Give one table at a time.")


def analyze_run(path: str, options: AnalyzeOptions) -> JudgedRun:
    """The judgement of the one run at `path`.

    Raises `InputError` where there is none, or more than one, or it cannot be read; `ConfigError` as `plan_of`.
    """
    plan = plan_of(options)
    adapters_of(options.format)  # an error for a format that there is not comes before one for a path
    return _one(plan, find_runs(path, options.format, options.wanted, options.names), path)


def analyze_table(table: Any, options: AnalyzeOptions) -> JudgedRun:
    """The judgement of the one run that a table logs. Raises as `analyze_run`."""
    return _one(plan_of(options), (run_in(table),), "table")


def _one(plan: Plan, found: Sequence[RunFiles], path: str) -> JudgedRun:
    log = _log_of_only(found[0], path, plan.options) if len(found) == 1 else _refuse_several(found, path)
    return judged(report_on(plan, log), partial(_as_it_is, log))


def _log_of_only(files: RunFiles, path: str, options: AnalyzeOptions) -> RunLog:
    with localized(files) as local:
        runs = local.told_by(partial(runs_in, local.files, options))
        if len(runs) > 1:
            _refuse_several([replace(run, name=local.told(run.name)) for run in runs], path)
        return _log_told(local, runs[0], options)


def _refuse_several(runs: Sequence[RunFiles | RunParts], path: str) -> NoReturn:
    one = f"Analyze one of them, or all with analyze_all: {_shown(', ', [run.name for run in runs])}"
    raise InputError(f"{shown_address(path)}: holds {len(runs)} runs", one)


def _as_it_is(log: RunLog) -> RunLog:
    return log


def _shown(between: str, texts: Sequence[str]) -> str:
    return between.join(texts[:_SHOWN_RUNS]) + (" ..." if len(texts) > _SHOWN_RUNS else "")


def each_run(paths: Sequence[str], options: AnalyzeOptions) -> Iterator[JudgedRun]:
    """The judgement of each run at each path, one after another.

    Raises `ConfigError` as `plan_of`, and behind the last one `InputError` for what could not be read; for a bug
    what has brought it about.
    """
    plan = plan_of(options)
    adapters_of(options.format)
    unread: list[InputError] = []
    bugs: list[Exception] = []
    for path in paths:
        for files in _tried(path, partial(_found, path, options), unread, bugs) or ():
            yield from _each_of(files, plan, unread, bugs)
    if bugs:
        raise bugs[0]
    if len(unread) == 1:
        raise unread[0]
    if unread:
        where = ", ".join(paths)
        raise InputError(f"{where}: {len(unread)} runs could not be read", _shown("; ", [e.message for e in unread]))


def _found(path: str, options: AnalyzeOptions) -> Sequence[RunFiles]:
    return find_runs(path, options.format, options.wanted, options.names)


def each_of_table(table: Any, options: AnalyzeOptions) -> Iterator[JudgedRun]:
    """The judgement of each run that a table logs, a column a metric. Raises as `analyze_run`."""
    plan = plan_of(options)
    for run in runs_in(run_in(table), options):
        log = log_of(run, options)
        yield judged(report_on(plan, log), partial(_as_it_is, log))


def _each_of(files: RunFiles, plan: Plan, unread: list[InputError], bugs: list[Exception]) -> Iterator[JudgedRun]:
    with ExitStack() as held:
        local = _tried(files.name, lambda: held.enter_context(localized(files)), unread, bugs)
        for name, read in _runs_of(local, files.name, plan.options, unread, bugs):
            log = _tried(name, read, unread, bugs)
            report = None if log is None else _tried(name, partial(report_on, plan, log), unread, bugs)
            if report is not None and log is not None:
                # A stream cannot be read again, and all logs at once fill the memory.
                again = partial(_read_again, files, name, plan.options)
                yield judged(report, partial(_as_it_is, log) if files.is_stream else again)


def _runs_of(
    local: Local | None, name: str, options: AnalyzeOptions, unread: list[InputError], bugs: list[Exception]
) -> Iterator[tuple[str, Callable[[], RunLog]]]:
    """Each run of logs that are at hand: its name, and what reads it."""
    if local is None:
        return
    for run in _tried(name, partial(local.told_by, partial(runs_in, local.files, options)), unread, bugs) or ():
        yield local.told(run.name), partial(_log_told, local, run, options)


def _log_told(local: Local, run: RunParts, options: AnalyzeOptions) -> RunLog:
    return local.told_log(local.told_by(partial(log_of, run, options)))


def _read_again(files: RunFiles, name: str, options: AnalyzeOptions) -> RunLog:
    with localized(files) as local:
        runs = local.told_by(partial(runs_in, local.files, options))
        run = next((run for run in runs if local.told(run.name) == name), None)
        if run is None:
            raise InputError(f"{name}: is not there any more")
        return _log_told(local, run, options)


def _tried(name: str, work: Callable[[], _R], unread: list[InputError], bugs: list[Exception]) -> _R | None:
    """The outcome of some work on one run, or None and an error more."""
    try:
        return work()
    except InputError as error:
        unread.append(error)
    except ConfigError:
        raise
    except RecursionError:
        unread.append(InputError(f"{name}: {TOO_DEEP}"))
    except Exception as error:
        if lacks_memory(error):
            unread.append(InputError(f"{name}: {NO_MEMORY}"))
        else:
            bugs.append(error)
    return None
