"""A path and options -> reports of its runs, on several processes where that pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gradtrend.detect.judge import judge
from gradtrend.detect.rules import load_rules
from gradtrend.errors import InputError
from gradtrend.ingest import RunFiles, adapters_of, find_runs
from gradtrend.model.report import Failure, RunReport
from gradtrend.model.rule import Rule
from gradtrend.model.runlog import RunLog
from gradtrend.pipeline import parallel
from gradtrend.pipeline.failures import each_log, found_runs
from gradtrend.pipeline.runs import AnalyzeOptions, log_of, runs_in
from gradtrend.pipeline.selection import rule_ids, without

# Measured on one core: a run of 1,000 steps, and JSON lines beyond that. It decides only whether to start processes.
_SECONDS_A_RUN = 0.008
_BYTES_A_SECOND = 50e6
# Of many runs each is kept in fewer points: 1,000 in 4,000 points a series would be 200 MB, and a report of that size.
_RUNS_IN_DETAIL, _COARSER = 32, 4
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

    Raises `ConfigError` as `analyze_paths`, and `InputError` behind the last one for what could not be read; for a bug
    what has brought it about.
    """
    plan = _plan(options)
    adapters_of(options.format)
    unread: list[InputError] = []
    for files in find_runs(path, options.format, options.wanted, options.names):
        for run in runs_in(files, options):
            try:
                yield _report(plan, log_of(run, options))
            except InputError as error:
                unread.append(error)
    if len(unread) == 1:
        raise unread[0]
    if unread:
        raise InputError(f"{path}: {len(unread)} runs could not be read", _shown("; ", [e.message for e in unread]))


def analyze_paths(
    paths: Sequence[str], options: AnalyzeOptions, processes: int = 1
) -> tuple[tuple[RunReport, ...], tuple[Failure, ...]]:
    """The judgements of the runs at each path, of many on several processes. A run that fails loses none of the others.

    Raises `ConfigError` for rule files that cannot be used, and for rules or a source that do not exist.
    """
    plan = _plan(options)
    jobs = [job for path in paths for job in found_runs(path, options)]
    runs = [job for job in jobs if isinstance(job, RunFiles)]
    if len(runs) > _RUNS_IN_DETAIL:
        plan = replace(plan, options=replace(options, points=options.points // _COARSER))
    seconds = sum(_seconds(run) for run in runs)
    if options.replay or any(run.is_stream for run in runs):  # torch has threads of its own
        processes = 1
    outcomes = parallel.in_order(partial(_analyzed, plan), jobs, seconds, processes)
    reports = tuple(report for found, _ in outcomes for report in found)
    return reports, tuple(failure for _, failed in outcomes for failure in failed)


def _plan(options: AnalyzeOptions) -> _Plan:
    rules = load_rules(options.rules_dir)
    selected = rule_ids(options.select, rules, "--select")
    return _Plan(options, rules, selected, rule_ids(options.ignore, rules, "--ignore"))


def _analyzed(plan: _Plan, job: RunFiles | Failure) -> tuple[list[RunReport], list[Failure]]:
    return each_log(job, plan.options, partial(_report, plan))


def _report(plan: _Plan, log: RunLog) -> RunReport:
    return without(_judged(log, plan), plan.selected, plan.ignored)


def _judged(log: RunLog, plan: _Plan) -> RunReport:
    report = judge(log, plan.rules, plan.options.points)
    if not plan.options.replay:
        return report
    from gradtrend.pipeline.replay import with_replays

    return with_replays(report, plan.options.trust, plan.rules, plan.options.announce)


def _seconds(run: RunFiles) -> float:
    """About how long a run takes. What a store's folder holds is not worth finding out."""
    try:
        size = sum(log.path.stat().st_size for log in run.logs)
    except OSError:  # gone, or an address
        size = 0
    return _SECONDS_A_RUN + size / _BYTES_A_SECOND
