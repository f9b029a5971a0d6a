"""A path and options -> reports of its runs, on several processes where that pays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from gradtrend.detect.judge import judge
from gradtrend.detect.rules import load_rules, with_limits
from gradtrend.ingest import RunFiles, first_runs
from gradtrend.model.report import Failure, RunReport
from gradtrend.model.rule import Rule
from gradtrend.model.runlog import RunLog
from gradtrend.pipeline.apart import Outcome, each_apart
from gradtrend.pipeline.failures import found_runs
from gradtrend.pipeline.inputs import check_no_input, logs_in
from gradtrend.pipeline.runs import AnalyzeOptions
from gradtrend.pipeline.selection import rule_ids, without

# Of many runs each is kept in fewer points: 1,000 in 2,000 points a series would be 100 MB, of which 24 are drawn.
_RUNS_IN_DETAIL, _COARSER = 32, 4
# Runs judged, failures beside them, and of how many pieces of work they are one, None while that is not known.
Heard = Callable[[Sequence[RunReport], Sequence[Failure], int | None], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done with each run of a call."""

    options: AnalyzeOptions
    rules: tuple[Rule, ...]
    selected: frozenset[str]
    ignored: frozenset[str]


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
    plan = plan_of(options)
    use = partial(report_on, plan)
    first = _first(paths, options) if heard is not None and not outputs else ()
    early = each_apart(first, options, use, processes, heard and partial(_told, heard, None))
    jobs = [job for path in paths for job in found_runs(path, options)]
    for output in outputs:
        check_no_input(output, paths, logs_in(jobs), options.rules_dir)
    if len(jobs) > _RUNS_IN_DETAIL:
        coarse = replace(plan, options=replace(options, points=options.points // _COARSER))
        use = partial(report_on, coarse)
    known = {run.name: (run, outcome) for run, outcome in zip(first, early, strict=True)}
    done = {i: known[job.name][1] for i, job in enumerate(jobs) if isinstance(job, RunFiles) and _is_known(job, known)}
    left = [job for i, job in enumerate(jobs) if i not in done]
    others = iter(each_apart(left, options, use, processes, heard and partial(_told, heard, len(jobs))))
    outcomes = [done[i] if i in done else next(others) for i in range(len(jobs))]
    reports = tuple(report for found, _ in outcomes for report in found)
    return reports, tuple(failure for _, failed in outcomes for failure in failed)


def _first(paths: Sequence[str], options: AnalyzeOptions) -> Sequence[RunFiles]:
    """Runs that can be judged before all are found; what is wanted of stores takes all of them."""
    if options.wanted or options.replay:
        return ()
    return first_runs(paths[0], options.format, options.names)


def _told(heard: Heard, count: int | None, place: int, outcome: Outcome[RunReport]) -> None:
    heard(*outcome, count)


def _is_known(job: RunFiles, known: Mapping[str, tuple[RunFiles, Outcome[RunReport]]]) -> bool:
    """Whether just these logs were read together before."""
    return job.name in known and known[job.name][0] == job


def plan_of(options: AnalyzeOptions) -> Plan:
    """The plan of a call. Raises `ConfigError` for rules that cannot be used, or do not exist."""
    rules = with_limits(load_rules(options.rules_dir), options.limits)
    selected = rule_ids(options.select, rules, "--select")
    return Plan(options, rules, selected, rule_ids(options.ignore, rules, "--ignore"))


def report_on(plan: Plan, log: RunLog) -> RunReport:
    """The judgement of a run, as far as its findings are wanted."""
    return without(_judged(log, plan), plan.selected, plan.ignored)


def _judged(log: RunLog, plan: Plan) -> RunReport:
    report = judge(log, plan.rules, plan.options.points)
    if not plan.options.replay:
        return report
    from gradtrend.pipeline.replay import with_replays

    return with_replays(report, plan.options.trust, plan.rules, plan.options.announce)
