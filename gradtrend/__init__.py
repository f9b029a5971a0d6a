"""A linter for training runs.

`analyze(path)` judges one run and returns a `RunReport`; `replay(path)` replays captured steps. Importing this package
loads nothing heavy.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gradtrend.errors import (
    ConfigError,
    EmptyLogError,
    GradtrendError,
    InputError,
    MissingPackageError,
    ReplayError,
    UnguardedScriptError,
)
from gradtrend.model.advice import Advice, SoFar
from gradtrend.model.capture import Capture, Frame, OverflowReport
from gradtrend.model.finding import Evidence, Finding
from gradtrend.model.report import Checks, NonFinite, RunReport, SeriesReport, SkippedRule
from gradtrend.model.runlog import Settings, Skipped, Source
from gradtrend.model.words import Cause, Order, Role, Severity, Trend, Verdict
from gradtrend.replay import ReplayOptions
from gradtrend.version import __version__

if TYPE_CHECKING:
    from gradtrend.model.replay import (
        Blame,
        Field,
        Inspection,
        LayerGradient,
        Magnitude,
        ModuleFrame,
        Origin,
        Outcome,
        Repeats,
        Replay,
        ReplayCause,
        Sample,
        Swap,
        SweepRow,
        TensorHealth,
    )
    from gradtrend.replay import native

__all__ = [
    "Advice",
    "Blame",
    "Capture",
    "Cause",
    "Checks",
    "ConfigError",
    "EmptyLogError",
    "Evidence",
    "Field",
    "Finding",
    "Frame",
    "GradtrendError",
    "InputError",
    "Inspection",
    "LayerGradient",
    "Magnitude",
    "MissingPackageError",
    "ModuleFrame",
    "NonFinite",
    "Order",
    "Origin",
    "Outcome",
    "OverflowReport",
    "Repeats",
    "Replay",
    "ReplayCause",
    "ReplayError",
    "Role",
    "RunReport",
    "Sample",
    "SeriesReport",
    "Settings",
    "Severity",
    "Skipped",
    "SkippedRule",
    "SoFar",
    "Source",
    "Swap",
    "SweepRow",
    "TensorHealth",
    "Trend",
    "UnguardedScriptError",
    "Verdict",
    "__version__",
    "analyze",
    "replay",
]


if not TYPE_CHECKING:  # where every misspelt name would be of any type

    def __getattr__(name: str) -> Any:
        """The types of a replay, which few programs need, when they are first asked for."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from gradtrend.model import replay as types

        return getattr(types, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def analyze(
    path: str | PathLike[str],
    *,
    metric: str | None = None,
    loss: str | None = None,
    lr: str | None = None,
    source: str = "auto",
    run_id: str | None = None,
    columns: str | Iterable[str] = (),
    rules_dir: str | PathLike[str] | None = None,
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
) -> RunReport:
    """The judgement of the one run at `path`: a run folder, a log file, an MLflow store or a tracking URI.

    `metric`, `loss` and `lr` name the series where gradtrend would not find them; `source` names the format to read;
    `run_id` picks a run of a store; `columns` names those of a table of bare numbers ("step,loss,-"); `rules_dir` adds
    or overrides rules; `select` and `ignore` take rule ids, their beginnings (`GT5`) and names, and filter the
    findings, not the verdict.

    A run that was read but tells too little has the verdict `undetermined`. Raises `InputError` where no run or more
    than one is found, or it cannot be read; `MissingPackageError`, one of these, where that takes a package that is not
    installed; `ConfigError` for a wrong option or rule file; `RuntimeError` for a bug, with the error that it is as its
    cause.
    """
    from gradtrend.pipeline.analyze import analyze_run
    from gradtrend.pipeline.runs import AnalyzeOptions, whose_bug
    from gradtrend.pipeline.selection import split_list

    options = AnalyzeOptions(
        metric=metric,
        loss=loss,
        lr=lr,
        source=source,
        run_id=run_id,
        columns=tuple(map(str.strip, columns.split(","))) if isinstance(columns, str) else tuple(columns),
        rules_dir=None if rules_dir is None else Path(rules_dir),
        select=split_list([select] if isinstance(select, str) else select),
        ignore=split_list([ignore] if isinstance(ignore, str) else ignore),
    )
    with _bugs_named(fspath(path), whose_bug(source)):
        return analyze_run(fspath(path), options)


@contextmanager
def _bugs_named(path: str, whose: str = "gradtrend") -> Iterator[None]:
    """Tell a bug in gradtrend from what a caller can mend: it is raised as a `RuntimeError` that says so."""
    try:
        yield
    except GradtrendError:
        raise
    except Exception as error:
        what = f"{path}: internal error: {type(error).__name__}: {error}"
        raise RuntimeError(f"{what}\nThis is a bug in {whose}; please report it with its traceback.") from error


if TYPE_CHECKING:

    class _Native(ModuleType):  # a type checker takes `replay` below for all of the package: no module can be called
        save_capture = staticmethod(native.save_capture)
        snapshot_random_states = staticmethod(native.snapshot_random_states)


class _ReplayPackage(ModuleType):
    """The package `gradtrend.replay`, which can be called: `gradtrend.replay(path)`."""

    if TYPE_CHECKING:
        native: _Native

    def __call__(
        self, path: str | PathLike[str], *, device: str = "auto", precision: str | None = None, trust: bool = False
    ) -> tuple[Replay, ...]:
        """The replays of the captured steps at `path`, a run folder or one capture: one result a capture.

        `device` is auto, cpu, cuda, cuda:1 ...; `precision` one of `gradtrend.model.precision.PRECISIONS`, by itself as
        captured. Without `trust` nothing of the file is imported or run, and the captures are inspected only. A
        capture that cannot be run has the outcome `cannot-run`. Raises `InputError` where there is no capture, and as
        `analyze` for a bug.
        """
        from gradtrend.pipeline.replay import replay_path

        with _bugs_named(fspath(path)):
            return replay_path(fspath(path), ReplayOptions(device, precision, trust))


_package = sys.modules["gradtrend.replay"]
_package.__class__ = _ReplayPackage
# Of a package, `help` shows its own text and not how it is called.
_package.__doc__ = f"gradtrend.replay{inspect.signature(_package.__call__)}\n\n{inspect.getdoc(_package.__call__)}"
if TYPE_CHECKING:
    replay: _ReplayPackage
