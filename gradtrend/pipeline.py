"""Joins ingest, detect and replay: a path and options -> reports of its runs, failures instead of exceptions."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gradtrend import parallel
from gradtrend.detect import rules as rule_files
from gradtrend.detect.judge import judge
from gradtrend.errors import ConfigError, GradtrendError, InputError
from gradtrend.ingest.adapters import ADAPTERS
from gradtrend.ingest.discover import RunFiles, find_runs
from gradtrend.ingest.load import Choice, load_runs
from gradtrend.ingest.reading import ReadOptions
from gradtrend.ingest.roles import name_metric
from gradtrend.ingest.settings import settings_of
from gradtrend.model.capture import Capture
from gradtrend.model.report import Checks, Failure, RunReport
from gradtrend.model.rule import REPLAY_NOTE, Rule
from gradtrend.model.runlog import RunLog
from gradtrend.replay import ReplayOptions as ReplayOptions
from gradtrend.replay import replay_captures, unreadable
from gradtrend.selection import rule_ids, without

if TYPE_CHECKING:
    from gradtrend.model.contents import CaptureContents
    from gradtrend.model.replay import Replay

# Measured on one core: a run of 1,000 steps, and JSON lines beyond that. It decides only whether to start processes.
SECONDS_A_RUN = 0.008
BYTES_A_SECOND = 50e6

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class AnalyzeOptions:
    """What the user said about one call."""

    metric: str | None = None
    loss: str | None = None
    lr: str | None = None
    source: str = "auto"
    run_id: str | None = None
    rules_dir: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    replay: bool = False
    trust: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done with each run of a call."""

    options: AnalyzeOptions
    rules: tuple[Rule, ...]
    selected: frozenset[str]
    ignored: frozenset[str]


def analyze_path(path: str, options: AnalyzeOptions) -> tuple[tuple[RunReport, ...], tuple[Failure, ...]]:
    """Judge the run, or the runs, at `path`; as `analyze_paths`."""
    return analyze_paths((path,), options)


def analyze_paths(
    paths: Sequence[str], options: AnalyzeOptions, processes: int = 1
) -> tuple[tuple[RunReport, ...], tuple[Failure, ...]]:
    """Judge the runs at each path, many of them on several processes. A run that fails loses none of the others.

    Raises ConfigError for rule files that cannot be used, and for rules or a source that do not exist.
    """
    rules = load_rules(options.rules_dir)
    selected = rule_ids(options.select, rules, "--select")
    plan = _Plan(options, rules, selected, rule_ids(options.ignore, rules, "--ignore"))
    jobs = [job for path in paths for job in _found(path, options)]
    runs = [job for job in jobs if isinstance(job, RunFiles)]
    seconds = sum(_seconds(run) for run in runs)
    if options.replay or any(run.is_stream for run in runs):  # torch has threads of its own
        processes = 1
    outcomes = parallel.in_order(partial(_analyzed, plan), jobs, seconds, processes)
    reports = tuple(report for found, _ in outcomes for report in found)
    return reports, tuple(failure for _, failed in outcomes for failure in failed)


def _analyzed(plan: _Plan, job: RunFiles | Failure) -> tuple[list[RunReport], list[Failure]]:
    return _each(job, plan.options, lambda log: without(_judged(log, plan), plan.selected, plan.ignored))


def _judged(log: RunLog, plan: _Plan) -> RunReport:
    report = judge(log, plan.rules)
    if not plan.options.replay:
        return report
    return _with_replays(report, ReplayOptions(trust=plan.options.trust), plan.rules)


def _seconds(run: RunFiles) -> float:
    """About how long a run takes. What a store's folder holds is not worth finding out."""
    try:
        size = sum(log.path.stat().st_size for log in run.logs)
    except OSError:  # gone, or an address
        size = 0
    return SECONDS_A_RUN + size / BYTES_A_SECOND


def read_path(path: str, options: AnalyzeOptions) -> tuple[tuple[RunLog, ...], tuple[Failure, ...]]:
    """Read the run, or the runs, at `path` without judging."""
    outcomes = [_each(job, options, lambda log: log) for job in _found(path, options)]
    return tuple(log for found, _ in outcomes for log in found), tuple(f for _, failed in outcomes for f in failed)


def _found(path: str, options: AnalyzeOptions) -> Sequence[RunFiles | Failure]:
    """The runs at a path, or the one failure to find any."""
    if options.source not in source_names():
        known = ", ".join(source_names())
        raise ConfigError(f"--source: no format {options.source!r}", f"Known: {known}.")
    failures: list[Failure] = []
    return _guarded(path, lambda: find_runs(path, options.source), failures) or failures


def _each(
    job: RunFiles | Failure, options: AnalyzeOptions, use: Callable[[RunLog], _T]
) -> tuple[list[_T], list[Failure]]:
    """The use of each log of one run folder."""
    if isinstance(job, Failure):
        return [], [job]
    results: list[_T] = []
    failures: list[Failure] = []
    choice, read_options = Choice(options.metric, options.loss, options.lr), ReadOptions(options.run_id)
    for log in _guarded(job.name, lambda: load_runs(job, read_options, choice), failures) or ():
        result = _guarded(log.run, partial(use, log), failures)
        if result is not None:
            results.append(result)
    return results, failures


def _guarded(name: str, work: Callable[[], _R], failures: list[Failure]) -> _R | None:
    """The outcome of some work on one run, or None and a failure more: the other runs go on."""
    try:
        return work()
    except ConfigError:
        raise
    except GradtrendError as error:
        failures.append(Failure(name, error.message, error.hint))
    except Exception as error:  # a bug: reported as one
        failures.append(_bug(name, error))
    return None


def _bug(path: str, error: Exception) -> Failure:
    return Failure(
        path,
        f"internal error: {type(error).__name__}: {error}",
        "This is a bug in gradtrend; please report it with the output of --debug.",
        bug=traceback.format_exc(),
    )


def load_rules(rules_dir: Path | None) -> tuple[Rule, ...]:
    """All rules, those of `rules_dir` added or in place of the shipped ones with the same id. Raises ConfigError."""
    return rule_files.load_rules(rules_dir)


def rule_text(rule_id: str, rules_dir: Path | None) -> str:
    """The file of a rule as it stands, the one of `rules_dir` before the shipped one."""
    return rule_files.rule_text(rule_id, rules_dir)


def source_names() -> tuple[str, ...]:
    """What `--source` takes."""
    return ("auto", *(adapter.name for adapter in ADAPTERS))


def explain_role(metric: str) -> str:
    """Why a metric has its role."""
    return name_metric(metric).why


def replay_path(path: str, options: ReplayOptions, rules_dir: Path | None = None) -> tuple[Replay, ...]:
    """Replay every capture at `path`: a capture, a run folder, or a folder of runs.

    Raises `InputError` where there is none, `ConfigError` for rule files that cannot be used.
    """
    from gradtrend.ingest.captures import find_captures

    rules = load_rules(rules_dir)
    given = Path(path)
    if not path or not given.exists():  # of an empty path, Path makes the current folder
        raise InputError(
            f"{path or 'an empty path'}: no such file or folder",
            "Give a run folder, or a capture file under its debug/.",
        )
    runs = [run for run in (given, *_children(given)) if find_captures(run)]
    if not runs:
        raise InputError(
            f"{path}: no captured step found",
            "Captures lie under debug/ of a run: LightlyTrain writes one with "
            'debug_args={"nancapture": {"enabled": True}}, other loops with gradtrend.replay.native.save_capture.',
        )
    return tuple(result for run in runs for result in _replay_run(run, find_captures(run), options, rules))


def _children(folder: Path) -> list[Path]:
    from gradtrend.ingest.captures import find_captures

    if not folder.is_dir() or find_captures(folder):
        return []
    return sorted(child for child in folder.iterdir() if child.is_dir())


def _replay_run(
    run: Path, captures: tuple[Capture, ...], options: ReplayOptions, rules: tuple[Rule, ...]
) -> tuple[Replay, ...]:
    """The replays of one run's captures, those of its ranks taken together, in the captures' order."""
    from gradtrend.ingest.captures import read_capture
    from gradtrend.replay.findings import with_findings

    if options.setting is None:
        options = replace(options, setting=settings_of(_run_folder(run)).precision)
    read: list[tuple[str, CaptureContents]] = []
    results: dict[str, Replay] = {}
    for capture in captures:
        file = run if run.is_file() else run / capture.path
        try:
            read.append((str(file), read_capture(file)))
        except InputError as error:
            results[str(file)] = unreadable(str(file), capture.kind, error.message)
    results |= {result.inspection.path: result for result in replay_captures(read, options)}
    files = [str(run if run.is_file() else run / capture.path) for capture in captures]
    return tuple(with_findings(results[file], rules) for file in files)


def _run_folder(path: Path) -> Path:
    """The run that a capture, or a folder under `debug/`, belongs to."""
    for folder in (path, *path.resolve().parents):
        if folder.name == "debug":
            return folder.parent
    return path if path.is_dir() else path.parent


def _with_replays(report: RunReport, options: ReplayOptions, rules: tuple[Rule, ...]) -> RunReport:
    """The report of an analysed run with the replays of its captures and their findings."""
    if not report.captures:
        return report
    path = Path(report.run)
    folder = path.parent if path.is_file() else path
    options = replace(options, setting=report.settings.precision)
    results = _replay_run(folder, report.captures, options, rules)
    replays = {capture.path: result for capture, result in zip(report.captures, results, strict=True)}
    findings = [finding for result in results for finding in result.findings]
    ran = {rule.id for rule in rules if rule.note == REPLAY_NOTE}
    checks = Checks(
        tuple(sorted({*report.checks.ran, *ran})),
        tuple(skipped for skipped in report.checks.skipped if skipped.rule not in ran),
    )
    ordered = sorted((*report.findings, *findings), key=lambda finding: -finding.severity.rank)
    return replace(report, findings=tuple(ordered), replays=replays, checks=checks)
