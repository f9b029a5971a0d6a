"""A linter for training runs.

    import gradtrend

    report = gradtrend.analyze("out/run")       # one run: a folder, a log, an s3:// address, a DataFrame, a dict
    reports = gradtrend.analyze_all("sweep")    # one after another: all runs below a path, or below several
    report.verdict, report.confidence, report.why, report.findings, report.next
    report                                  # in a notebook: the report; print(report): as text
    report.to_text(), report.to_json(), report.to_dict(), report.save("report.json")
    report.series_frame()                   # what was logged, as a DataFrame of polars; .to_pandas()

    gradtrend.scan("runs", state="scan.state").frame()    # thousands: a record each, only what has changed read again
    gradtrend.replay("out/run")             # captured steps again
    gradtrend.diagnose(model, batch)        # one step of a live model, layer by layer

The types of what comes back are here too (`Verdict`, `Finding` ...), and all errors: `GradtrendError` is their base,
`InputError` says what cannot be read, `ConfigError` which option is wrong. Importing this loads nothing heavy.
"""

from __future__ import annotations

from gradtrend.loading import quiet_while_loading

quiet_while_loading()  # before all that takes time

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Unpack

from gradtrend.called import ReplayPackage, bugs_named
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
from gradtrend.version import __version__

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from gradtrend.model.diagnosis import (
        DepthTrend,
        Diagnosis,
        Fit,
        Flow,
        LayerFlow,
        LayerOutput,
        LossStart,
        Moments,
        Overfit,
        Start,
    )
    from gradtrend.model.many.record import Record
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
        Share,
        Swap,
        SweepRow,
        TensorHealth,
    )
    from gradtrend.model.series import Outline
    from gradtrend.pipeline.diagnose import PrintedDiagnosis
    from gradtrend.pipeline.programs.judged import JudgedRun
    from gradtrend.pipeline.programs.scanned import Scan
    from gradtrend.pipeline.programs.tables import Table
    from gradtrend.pipeline.runs import ReadingOptions

__all__ = [
    "Advice", "Blame", "Capture", "Cause", "Checks", "ConfigError", "DepthTrend", "Diagnosis", "EmptyLogError",
    "Evidence", "Field", "Finding", "Fit", "Flow", "Frame", "GradtrendError", "InputError", "Inspection",
    "JudgedRun", "LayerFlow", "LayerGradient", "LayerOutput", "LossStart", "Magnitude", "MissingPackageError",
    "ModuleFrame", "Moments", "NonFinite", "Order", "Origin", "Outcome", "Outline", "Overfit", "OverflowReport",
    "Record", "Repeats", "Replay", "ReplayCause", "ReplayError", "Role", "RunReport", "Sample", "Scan",
    "SeriesReport", "Settings", "Severity", "Share", "Skipped", "SkippedRule", "SoFar", "Source", "Start", "Swap",
    "SweepRow", "TensorHealth", "Trend", "UnguardedScriptError", "Verdict", "__version__", "analyze", "analyze_all",
    "diagnose", "replay", "scan",
]  # fmt: skip


if not TYPE_CHECKING:  # where every misspelt name would be of any type

    def __getattr__(name: str) -> Any:
        """The types that few programs name, when they are first asked for."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        places = ("model.replay", "model.diagnosis", "model.series", "model.many.record")
        places += ("pipeline.programs.judged", "pipeline.programs.scanned")
        modules = (import_module(f"gradtrend.{place}") for place in places)
        return next(getattr(module, name) for module in modules if hasattr(module, name))


def __dir__() -> list[str]:
    """What is called: all that `help` is to show. The types of what comes back are in `__all__`."""
    return [
        *(name for name in globals() if name.startswith("__")),
        "analyze",
        "analyze_all",
        "diagnose",
        "replay",
        "scan",
    ]


def analyze(
    path: str | PathLike[str] | Table,
    *,
    metric: str | None = None,
    loss: str | None = None,
    lr: str | None = None,
    source: str = "auto",
    run_id: str | Iterable[str] | None = None,
    experiment: str | None = None,
    newest: bool = False,
    columns: str | Iterable[str] = (),
    rules_dir: str | PathLike[str] | None = None,
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
) -> JudgedRun:
    """The judgement of one run: the path of a run folder, a log file, a run of a store or of a tracking server; or what
    it logged, as a DataFrame of polars or pandas or a dict of columns, with a column `step` if there is one.

    `metric`, `loss` and `lr` name the series where gradtrend would not find them; `source` names the format to read;
    `run_id` (ids, names or beginnings of either), `experiment` and `newest` pick runs of a store; `columns` names those
    of a table of bare numbers ("step,loss,-"); `rules_dir` adds or overrides rules; `select` and `ignore` take rule
    ids, their beginnings (`GT5`) and names, and filter the findings, not the verdict.

    A run that was read but tells too little has the verdict `undetermined`. Raises `InputError` where no run or more
    than one is found, or it cannot be read; `MissingPackageError`, one of these, where that takes a package that is not
    installed; `ConfigError` for a wrong option or rule file; `RuntimeError` for a bug, with the error that it is as its
    cause.
    """
    from gradtrend.pipeline.programs.one_by_one import analyze_run, analyze_table, is_path
    from gradtrend.pipeline.runs import options_from

    options = options_from(metric, loss, lr, source, run_id, experiment, newest, columns, rules_dir, select, ignore)
    with bugs_named(fspath(path) if is_path(path) else "table", source):
        return analyze_run(fspath(path), options) if is_path(path) else analyze_table(path, options)


def analyze_all(
    path: str | PathLike[str] | Iterable[str | PathLike[str]] | Table,
    *,
    metric: str | None = None,
    loss: str | None = None,
    lr: str | None = None,
    source: str = "auto",
    run_id: str | Iterable[str] | None = None,
    experiment: str | None = None,
    newest: bool = False,
    columns: str | Iterable[str] = (),
    rules_dir: str | PathLike[str] | None = None,
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
) -> Iterator[JudgedRun]:
    """The judgements of all runs at one path or at several, one after another.

    The options are those of `analyze`, and so are the errors, but for a path with several runs. Where some runs cannot
    be read, the `InputError` that says so is raised behind the reports of the others.
    """
    from gradtrend.pipeline.programs.one_by_one import each_of_table, each_run, paths_in
    from gradtrend.pipeline.runs import options_from

    options = options_from(metric, loss, lr, source, run_id, experiment, newest, columns, rules_dir, select, ignore)
    paths = paths_in(path)
    with bugs_named("table" if paths is None else ", ".join(paths), source):
        yield from each_of_table(path, options) if paths is None else each_run(paths, options)


def scan(
    path: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    executor: Executor | None = None,
    processes: int | None = None,
    state: str | PathLike[str] | None = None,
    newer_than: str | None = None,
    verdict: str | Iterable[str] = (),
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    shard: str | None = None,
    **reading: Unpack[ReadingOptions],
) -> Scan:
    """One `Record` for each run below one path or several: verdict, why, what to do, hyperparameters.

    `executor` is any of `concurrent.futures` whose workers have gradtrend and see the same paths: a pool of Python's,
    `Client.get_executor(pure=False)` of Dask, those of Ray, submitit, mpi4py. Else so many `processes` of this machine
    do the work (scripts then need `if __name__ == "__main__":`), with 0 this one; by itself one a core on Linux, but
    this one alone beside threads, polars or torch. `state` is a file that keeps what is found out: runs that have not
    changed are not read again. `newer_than` (`2d`, a date), `verdict`, `include`, `exclude` and `shard` (`1/4`) say
    which runs are wanted. The others are those of `analyze`, and its errors; only some paths unread are `failures`.
    """
    from gradtrend.pipeline.programs.one_by_one import paths_in
    from gradtrend.pipeline.programs.scanned import scan_paths
    from gradtrend.pipeline.runs import options_from, words_of
    from gradtrend.pipeline.scan.wanted import wanted_from

    options = options_from(**reading)
    wanted = wanted_from(newer_than, words_of(verdict), words_of(include), words_of(exclude), shard)
    paths = paths_in(path)
    if paths is None:
        raise InputError("scan takes paths, not a table", "One table is for analyze.")
    with bugs_named(", ".join(paths), options.source):
        return scan_paths(paths, options, wanted, executor, processes, state)


def diagnose(
    model: Any,
    batch: Any,
    *,
    step: Callable[[Any, Any], Any] | None = None,
    classes: int | None = None,
    device: str | None = None,
    precisions: bool = True,
    overfit_steps: int = 50,
) -> PrintedDiagnosis:
    """The diagnosis of one training step of a `torch.nn.Module`, layer by layer; `print` shows it as text.

    `step(model, batch)` gives the loss; without it the model's `training_step`, or `model(**batch)` of a dict and
    `model(batch)` of anything else, gives it itself, as a scalar or in `.loss`. `classes` is their number where the
    loss is a cross-entropy that is not made by torch's own functions. `device` is by itself where the model is;
    `precisions` tries the step in all of them; `overfit_steps` are trained on a copy with Adam at 0.001 (0: none).

    The model is afterwards bit for bit as before: parameters, buffers, gradients, modes, hooks, and the generators of
    random numbers. Raises `InputError` for what is no model or a batch without samples, `ReplayError` for a step that
    cannot be run, `ConfigError` for a wrong option, `MissingPackageError` without torch; and as `analyze` for a bug.
    """
    from gradtrend.pipeline.diagnose import diagnose as run

    with bugs_named("diagnose"):
        return run(model, batch, step, classes, device, precisions, overfit_steps)


_package = sys.modules["gradtrend.replay"]
_package.__class__ = ReplayPackage
# Of a package, `help` shows its own text and not how it is called.
_package.__doc__ = f"gradtrend.replay{inspect.signature(_package.__call__)}\n\n{inspect.getdoc(_package.__call__)}"
if TYPE_CHECKING:
    replay: ReplayPackage
