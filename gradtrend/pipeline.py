"""Joins ingest and detect: a path and options -> reports of its runs, failures instead of exceptions."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gradtrend.detect import rules as rule_files
from gradtrend.detect.judge import judge
from gradtrend.errors import ConfigError, GradtrendError
from gradtrend.ingest.adapters import ADAPTERS
from gradtrend.ingest.discover import RunFiles, find_runs
from gradtrend.ingest.load import Choice, load_run
from gradtrend.ingest.reading import ReadOptions
from gradtrend.ingest.roles import name_metric
from gradtrend.model.report import Failure, RunReport
from gradtrend.model.rule import Rule
from gradtrend.model.runlog import RunLog
from gradtrend.selection import rule_ids, without

_T = TypeVar("_T")


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


def analyze_path(path: str, options: AnalyzeOptions) -> tuple[tuple[RunReport, ...], tuple[Failure, ...]]:
    """Judge the run, or the runs, at `path`. A run that fails in any way loses none of the others.

    Raises ConfigError for rule files that cannot be used, and for rules or a source that do not exist.
    """
    rules = load_rules(options.rules_dir)
    selected = rule_ids(options.select, rules, "--select")
    ignored = rule_ids(options.ignore, rules, "--ignore")
    return _each(path, options, lambda log: without(_judged(log, rules, options), selected, ignored))


def _judged(log: RunLog, rules: tuple[Rule, ...], options: AnalyzeOptions) -> RunReport:
    report = judge(log, rules)
    if not options.replay:
        return report
    from gradtrend.replay import ReplayOptions
    from gradtrend.replaying import add_replays

    return add_replays(report, ReplayOptions(trust=options.trust), rules)


def read_path(path: str, options: AnalyzeOptions) -> tuple[tuple[RunLog, ...], tuple[Failure, ...]]:
    """Read the run, or the runs, at `path` without judging."""
    return _each(path, options, lambda log: log)


def _each(
    path: str, options: AnalyzeOptions, use: Callable[[RunLog], _T]
) -> tuple[tuple[_T, ...], tuple[Failure, ...]]:
    results: list[_T] = []
    failures: list[Failure] = []
    for name, load in _loaders(path, options, failures):
        try:
            results.append(use(load()))
        except ConfigError:
            raise
        except GradtrendError as error:
            failures.append(Failure(name, error.message, error.hint))
        except Exception as error:  # a bug: reported as one, the other runs go on
            failures.append(_bug(name, error))
    return tuple(results), tuple(failures)


def _loaders(path: str, options: AnalyzeOptions, failures: list[Failure]) -> Iterator[tuple[str, Callable[[], RunLog]]]:
    if options.source not in source_names():
        known = ", ".join(source_names())
        raise ConfigError(f"--source: no format {options.source!r}", f"Known: {known}.")
    choice = Choice(options.metric, options.loss, options.lr)
    read_options = ReadOptions(options.run_id)

    def loader(run: RunFiles) -> Callable[[], RunLog]:
        return lambda: load_run(run, read_options, choice)

    try:
        runs = find_runs(path, options.source)
    except GradtrendError as error:
        failures.append(Failure(path, error.message, error.hint))
        return
    except Exception as error:
        failures.append(_bug(path, error))
        return
    for run in runs:
        yield run.name, loader(run)


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


def source_names() -> tuple[str, ...]:
    """What `--source` takes."""
    return ("auto", *(adapter.name for adapter in ADAPTERS))


def explain_role(metric: str) -> str:
    """Why a metric has its role."""
    return name_metric(metric).why
