"""A linter for training runs.

    import gradtrend

    report = gradtrend.analyze("out/run")          # one run: a folder, a log, a DataFrame, a dict of lists
    for report in gradtrend.analyze_all("sweep"):  # all runs below a path, or below several
        print(report.verdict, report.confidence, report.run, report.why)

    report                       # in a notebook: the report          print(report)  # as text
    report.findings, .series, .nonfinite, .next                       # what it holds
    report.to_text(), report.to_json(), report.to_dict(), report.save("report.json")
    report.series_frame()        # what was logged, as a DataFrame of polars; .to_pandas()

    gradtrend.replay("out/run")            # captured steps again
    gradtrend.diagnose(model, batch)       # one step of a live model, layer by layer

The types of all that these return are here too (`Verdict`, `Finding`, `Replay` ...), and all errors: `GradtrendError`
is their base, `InputError` says what cannot be read, `ConfigError` which option is wrong. Importing this package loads
nothing heavy.
"""

from __future__ import annotations

from gradtrend.loading import quiet_while_loading

quiet_while_loading()  # before all that takes time

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from os import PathLike, fspath
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gradtrend.errors import (
    ConfigError as ConfigError,
)
from gradtrend.errors import (
    EmptyLogError as EmptyLogError,
)
from gradtrend.errors import (
    GradtrendError as GradtrendError,
)
from gradtrend.errors import (
    InputError as InputError,
)
from gradtrend.errors import (
    MissingPackageError as MissingPackageError,
)
from gradtrend.errors import (
    ReplayError as ReplayError,
)
from gradtrend.errors import (
    UnguardedScriptError as UnguardedScriptError,
)
from gradtrend.model.advice import (
    Advice as Advice,
)
from gradtrend.model.advice import (
    SoFar as SoFar,
)
from gradtrend.model.capture import (
    Capture as Capture,
)
from gradtrend.model.capture import (
    Frame as Frame,
)
from gradtrend.model.capture import (
    OverflowReport as OverflowReport,
)
from gradtrend.model.finding import (
    Evidence as Evidence,
)
from gradtrend.model.finding import (
    Finding as Finding,
)
from gradtrend.model.report import (
    Checks as Checks,
)
from gradtrend.model.report import (
    NonFinite as NonFinite,
)
from gradtrend.model.report import (
    RunReport as RunReport,
)
from gradtrend.model.report import (
    SeriesReport as SeriesReport,
)
from gradtrend.model.report import (
    SkippedRule as SkippedRule,
)
from gradtrend.model.runlog import (
    Settings as Settings,
)
from gradtrend.model.runlog import (
    Skipped as Skipped,
)
from gradtrend.model.runlog import (
    Source as Source,
)
from gradtrend.model.words import (
    Cause as Cause,
)
from gradtrend.model.words import (
    Order as Order,
)
from gradtrend.model.words import (
    Role as Role,
)
from gradtrend.model.words import (
    Severity as Severity,
)
from gradtrend.model.words import (
    Trend as Trend,
)
from gradtrend.model.words import (
    Verdict as Verdict,
)
from gradtrend.replay import ReplayOptions
from gradtrend.version import __version__ as __version__

if TYPE_CHECKING:
    from gradtrend.model.diagnosis import (
        DepthTrend as DepthTrend,
    )
    from gradtrend.model.diagnosis import (
        Diagnosis as Diagnosis,
    )
    from gradtrend.model.diagnosis import (
        Fit as Fit,
    )
    from gradtrend.model.diagnosis import (
        Flow as Flow,
    )
    from gradtrend.model.diagnosis import (
        LayerFlow as LayerFlow,
    )
    from gradtrend.model.diagnosis import (
        LayerOutput as LayerOutput,
    )
    from gradtrend.model.diagnosis import (
        LossStart as LossStart,
    )
    from gradtrend.model.diagnosis import (
        Moments as Moments,
    )
    from gradtrend.model.diagnosis import (
        Overfit as Overfit,
    )
    from gradtrend.model.diagnosis import (
        Start as Start,
    )
    from gradtrend.model.replay import (
        Blame as Blame,
    )
    from gradtrend.model.replay import (
        Field as Field,
    )
    from gradtrend.model.replay import (
        Inspection as Inspection,
    )
    from gradtrend.model.replay import (
        LayerGradient as LayerGradient,
    )
    from gradtrend.model.replay import (
        Magnitude as Magnitude,
    )
    from gradtrend.model.replay import (
        ModuleFrame as ModuleFrame,
    )
    from gradtrend.model.replay import (
        Origin as Origin,
    )
    from gradtrend.model.replay import (
        Outcome as Outcome,
    )
    from gradtrend.model.replay import (
        Repeats as Repeats,
    )
    from gradtrend.model.replay import (
        Replay as Replay,
    )
    from gradtrend.model.replay import (
        ReplayCause as ReplayCause,
    )
    from gradtrend.model.replay import (
        Sample as Sample,
    )
    from gradtrend.model.replay import (
        Share as Share,
    )
    from gradtrend.model.replay import (
        Swap as Swap,
    )
    from gradtrend.model.replay import (
        SweepRow as SweepRow,
    )
    from gradtrend.model.replay import (
        TensorHealth as TensorHealth,
    )
    from gradtrend.pipeline.diagnose import PrintedDiagnosis as PrintedDiagnosis
    from gradtrend.pipeline.judged import JudgedRun as JudgedRun
    from gradtrend.pipeline.tables import Table
    from gradtrend.replay import native

# What `help` and `import *` show. The types, which a program names but does not make, are there all the same.
__all__ = ["analyze", "analyze_all", "diagnose", "replay"]

# Types that few programs need, by the module from which each comes when it is first asked for.
_LATE = {
    "gradtrend.model.diagnosis": (
        "DepthTrend",
        "Diagnosis",
        "Fit",
        "Flow",
        "LayerFlow",
        "LayerOutput",
        "LossStart",
        "Moments",
        "Overfit",
        "Start",
    ),
    "gradtrend.model.replay": (
        "Blame",
        "Field",
        "Inspection",
        "LayerGradient",
        "Magnitude",
        "ModuleFrame",
        "Origin",
        "Outcome",
        "Repeats",
        "Replay",
        "ReplayCause",
        "Sample",
        "Share",
        "Swap",
        "SweepRow",
        "TensorHealth",
    ),
    "gradtrend.pipeline.diagnose": ("PrintedDiagnosis",),
    "gradtrend.pipeline.judged": ("JudgedRun",),
}


if not TYPE_CHECKING:  # where every misspelt name would be of any type

    def __getattr__(name: str) -> Any:
        """The type of that name."""
        for place, names in _LATE.items():
            if name in names:
                return getattr(import_module(place), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *(name for names in _LATE.values() for name in names)})


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
    from gradtrend.pipeline.one_by_one import analyze_run, analyze_table, is_path
    from gradtrend.pipeline.runs import options_from

    options = options_from(metric, loss, lr, source, run_id, experiment, newest, columns, rules_dir, select, ignore)
    if is_path(path):
        with _bugs_named(fspath(path), source):
            return analyze_run(fspath(path), options)
    with _bugs_named(type(path).__name__, source):
        return analyze_table(path, options)


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
    """The judgements of all runs at a path or at several, one after another: folders of runs, logs and stores that hold
    several.

    The options are those of `analyze`, and so are the errors, but for a path with several runs. Where some runs cannot
    be read, the `InputError` that says so is raised behind the reports of the others.
    """
    from gradtrend.pipeline.one_by_one import each_of_table, each_run, paths_in
    from gradtrend.pipeline.runs import options_from

    options = options_from(metric, loss, lr, source, run_id, experiment, newest, columns, rules_dir, select, ignore)
    paths = paths_in(path)
    with _bugs_named(type(path).__name__ if paths is None else ", ".join(paths), source):
        yield from each_of_table(path, options) if paths is None else each_run(paths, options)


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

    with _bugs_named("diagnose"):
        return run(model, batch, step, classes, device, precisions, overfit_steps)


@contextmanager
def _bugs_named(path: str, source: str = "auto") -> Iterator[None]:
    """Tell a bug in gradtrend from what a caller can mend: it is raised as a `RuntimeError` that says so."""
    try:
        yield
    except GradtrendError:
        raise
    except Exception as error:
        from gradtrend.pipeline.runs import whose_bug

        what = f"{path}: internal error: {type(error).__name__}: {error}"
        whose = whose_bug(source)
        raise RuntimeError(f"{what}\nThis is a bug in {whose}; please report it with its traceback.") from error


if TYPE_CHECKING:

    class _Native(ModuleType):  # a type checker takes `replay` below for all of the package: no module can be called
        capture_step = staticmethod(native.capture_step)
        save_capture = staticmethod(native.save_capture)
        snapshot_random_states = staticmethod(native.snapshot_random_states)


class _ReplayPackage(ModuleType):
    """The package `gradtrend.replay`, which can be called: `gradtrend.replay(path)`."""

    if TYPE_CHECKING:
        native: _Native

    def __call__(
        self,
        path: str | PathLike[str],
        *,
        device: str = "auto",
        precision: str | None = None,
        trust: bool = False,
        layers: bool = False,
    ) -> tuple[Replay, ...]:
        """The replays of the captured steps at `path`, a run folder or one capture: one result a capture.

        `device` is auto, cpu, cuda, cuda:1 ...; `precision` one of `gradtrend.model.precision.PRECISIONS`, by itself as
        captured. Without `trust` nothing of the file is imported or run, and the captures are inspected only. With
        `layers` each that is run has a `diagnosis`, as `gradtrend.diagnose` gives one. A capture that cannot be run has
        the outcome `cannot-run`. Raises `InputError` where there is no capture, and as `analyze` for a bug.
        """
        from gradtrend.pipeline.replay import replay_path

        with _bugs_named(fspath(path)):
            return replay_path(fspath(path), ReplayOptions(device, precision, trust, layers=layers))


_package = sys.modules["gradtrend.replay"]
_package.__class__ = _ReplayPackage
# Of a package, `help` shows its own text and not how it is called.
_package.__doc__ = f"gradtrend.replay{inspect.signature(_package.__call__)}\n\n{inspect.getdoc(_package.__call__)}"
if TYPE_CHECKING:
    replay: _ReplayPackage
