"""A path -> the logs of its runs, with failures in place of exceptions."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from gradtrend.errors import ConfigError, GradtrendError
from gradtrend.ingest import ADAPTERS, Choice, ReadOptions, RunFiles, find_runs, load_runs
from gradtrend.model.report import Failure
from gradtrend.model.runlog import RunLog

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


def found_runs(path: str, options: AnalyzeOptions) -> Sequence[RunFiles | Failure]:
    """The runs at a path, or the one failure to find any."""
    if options.source not in source_names():
        known = ", ".join(source_names())
        raise ConfigError(f"--source: no format {options.source!r}", f"Known: {known}.")
    failures: list[Failure] = []
    return _guarded(path, lambda: find_runs(path, options.source), failures) or failures


def each_log(
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


def source_names() -> tuple[str, ...]:
    """What `--source` takes."""
    return ("auto", *(adapter.name for adapter in ADAPTERS))
