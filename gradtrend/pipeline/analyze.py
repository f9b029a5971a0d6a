"""A path and options -> reports of its runs, on several processes where that pays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from gradtrend.detect.judge import judge
from gradtrend.detect.rules import load_rules
from gradtrend.errors import ConfigError, InputError
from gradtrend.ingest import RunFiles, RunParts, adapters_of, find_runs, first_runs
from gradtrend.model.report import Failure, RunReport
from gradtrend.model.rule import Rule
from gradtrend.model.runlog import RunLog
from gradtrend.pipeline.apart import Outcome, each_apart
from gradtrend.pipeline.failures import found_runs
from gradtrend.pipeline.inputs import check_no_input
from gradtrend.pipeline.memory import NO_MEMORY, TOO_DEEP, lacks_memory
from gradtrend.pipeline.runs import AnalyzeOptions, log_of, runs_in
from gradtrend.pipeline.selection import rule_ids, without

_R = TypeVar("_R")
# Runs judged, failures beside them, and of how many pieces of work they are one, None while that is not known.
Heard = Callable[[Sequence[RunReport], Sequence[Failure], int | None], None]
_SHOWN_RUNS = 10  # named where one run was wanted and several were found


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done with each run of a call."""

    options: AnalyzeOptions
    rules: tuple[Rule, ...]
    selected: frozenset[str]
    ignored: frozenset[str]


def analyze_run(path: str, options: AnalyzeOptions) -> RunReport:
    """The judgement of the one run at `path`.

    Raises `InputError` where there is none, or more than one, or it cannot be read; `ConfigError` as `analyze_paths`.
    """
    plan = _plan(options)
    adapters_of(options.format)  # an error for a format that there is not comes before one for a path
    found = find_runs(path, options.format, options.wanted, options.names)
    runs = runs_in(found[0], options) if len(found) == 1 else ()
    names = [run.name for run in runs or found]
    if len(names) > 1:
        one = f"Analyze one of them, or all with analyze_all: {_shown(', ', names)}"
        raise InputError(f"{path}: holds {len(names)} runs", one)
    return _report(plan, log_of(runs[0], options))


def _shown(between: str, texts: Sequence[str]) -> str:
    return between.join(texts[:_SHOWN_RUNS]) + (" ..." if len(texts) > _SHOWN_RUNS else "")


def each_run(path: str, options: AnalyzeOptions) -> Iterator[RunReport]:
    """The judgement of each run at `path`, one after another.

    Raises `ConfigError` as `analyze_paths`, and behind the last one `InputError` for what could not be read; for a bug
    what has brought it about.
    """
    plan = _plan(options)
    adapters_of(options.format)
    unread: list[InputError] = []
    bugs: list[Exception] = []
    for files in find_runs(path, options.format, options.wanted, options.names):
        for run in _tried(files.name, partial(runs_in, files, options), unread, bugs) or ():
            report = _tried(run.name, partial(_report_of, plan, run), unread, bugs)
            if report is not None:
                yield report
    if bugs:
        raise bugs[0]
    if len(unread) == 1:
        raise unread[0]
    if unread:
        raise InputError(f"{path}: {len(unread)} runs could not be read", _shown("; ", [e.message for e in unread]))


def _report_of(plan: _Plan, run: RunParts) -> RunReport:
    return _report(plan, log_of(run, plan.options))


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


def analyze_paths(
    paths: Sequence[str],
    options: AnalyzeOptions,
    processes: int = 0,
    outputs: Sequence[Path] = (),
    heard: Heard | None = None,
) -> tuple[tuple[RunReport, ...], tuple[Failure, ...]]:
    """The judgements of the runs at each path. A run that fails loses none of the others; with `processes`, several are
    read by so many others at most, and what kills its process is a failure too. `heard` is told of each as soon as it
    is judged, of a large tree before all of it is found.

    Raises `ConfigError` for rule files that cannot be used, for rules or a source that do not exist, and where one of
    `outputs`, the files that the report will replace, is read for it.
    """
    plan = _plan(options)
    judged = partial(_report, plan)
    first = _first(paths, options) if heard is not None and not outputs else ()
    early = each_apart(first, options, judged, processes, heard and partial(_told, heard, None))
    jobs = [job for path in paths for job in found_runs(path, options)]
    logs = [log.path for job in jobs if isinstance(job, RunFiles) for log in job.logs]
    for output in outputs:
        check_no_input(output, paths, logs, options.rules_dir)
    known = {run.name: (run, outcome) for run, outcome in zip(first, early, strict=True)}
    done = {i: known[job.name][1] for i, job in enumerate(jobs) if isinstance(job, RunFiles) and _is_known(job, known)}
    left = [job for i, job in enumerate(jobs) if i not in done]
    others = iter(each_apart(left, options, judged, processes, heard and partial(_told, heard, len(jobs))))
    outcomes = [done[i] if i in done else next(others) for i in range(len(jobs))]
    reports = tuple(report for found, _ in outcomes for report in found)
    return reports, tuple(failure for _, failed in outcomes for failure in failed)


def _first(paths: Sequence[str], options: AnalyzeOptions) -> Sequence[RunFiles]:
    """Runs that can be judged before all are found; what is wanted of stores takes all of them."""
    if options.wanted or options.replay:
        return ()
    return first_runs(paths[0], options.format, options.names)


def _told(heard: Heard, count: int | None, outcome: Outcome[RunReport]) -> None:
    heard(*outcome, count)


def _is_known(job: RunFiles, known: Mapping[str, tuple[RunFiles, Outcome[RunReport]]]) -> bool:
    """Whether just these logs were read together before."""
    return job.name in known and known[job.name][0] == job


def _plan(options: AnalyzeOptions) -> _Plan:
    rules = load_rules(options.rules_dir)
    selected = rule_ids(options.select, rules, "--select")
    return _Plan(options, rules, selected, rule_ids(options.ignore, rules, "--ignore"))


def _report(plan: _Plan, log: RunLog) -> RunReport:
    return without(_judged(log, plan), plan.selected, plan.ignored)


def _judged(log: RunLog, plan: _Plan) -> RunReport:
    report = judge(log, plan.rules)
    if not plan.options.replay:
        return report
    from gradtrend.pipeline.replay import with_replays

    return with_replays(report, plan.options.trust, plan.rules, plan.options.announce)
