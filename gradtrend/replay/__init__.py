"""Captures: inspect them, re-run the step, say what it is. The only room that imports torch, and only to run a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradtrend.errors import GradtrendError, MissingPackageError, ReplayError

if TYPE_CHECKING:  # `import gradtrend` loads this file, and most calls replay nothing
    from gradtrend.model.contents import CaptureContents
    from gradtrend.model.diagnosis import Diagnosis
    from gradtrend.model.replay import Inspection, Replay
    from gradtrend.model.rule import Rule

_NEEDS_TRUST = "Replaying imports and runs the model's code. If you trust this capture, run again with --trust."


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How to replay.

    `precision` None: as captured, else as `setting` (what the run's own files say, "16-mixed") has it, else swept.
    `usual_norm` is the gradient norm of the run's usual steps, by its log. `announce` is told what will be imported
    and called before anything is. `first_run` runs a capture once in a process of its own: (path, device, precision)
    -> what it gave, as text that is the same for the same result; None where it cannot be told.
    `layers`: with the diagnosis of the step's layers.
    """

    device: str = "auto"
    precision: str | None = None
    trust: bool = False
    setting: str | None = None
    usual_norm: float | None = None
    announce: Callable[[str], None] | None = None
    first_run: Callable[[str, str, str], str | None] | None = None
    layers: bool = False


def replay_captures(captures: Sequence[tuple[str, CaptureContents]], options: ReplayOptions) -> tuple[Replay, ...]:
    """The replays of one run's captures (path to show, contents); those of several ranks are one event.

    Without trust they are inspected only. What goes wrong with one stands in its own result.
    """
    inspections = [_inspected(contents, shown) for shown, contents in captures]
    if not options.trust:
        return tuple(_untrusted(inspection) for inspection in inspections)
    if options.announce is not None and (text := _announcement(inspections)):
        options.announce(text)
    results = [
        _replay(contents, inspection, options) for (_, contents), inspection in zip(captures, inspections, strict=True)
    ]
    from gradtrend.replay.conclude.ranks import join_ranks

    return join_ranks(results)


def diagnosis_of(
    model: Any, batch: Any, step: Any, classes: int | None, device: str | None, precisions: bool, overfit_steps: int
) -> Diagnosis:
    """The diagnosis of one step of a live model, which is left as it is.

    Raises `InputError` for what is no model or holds no samples, `ReplayError` for a step that cannot be run,
    `MissingPackageError` without torch.
    """
    try:
        from gradtrend.replay.diagnose.step import diagnose_live
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingPackageError("diagnosing needs torch", "pip install 'gradtrend[replay]'") from error
    return diagnose_live(model, batch, step, classes, device, precisions, overfit_steps)


def _inspected(contents: CaptureContents, shown: str) -> Inspection:
    from gradtrend.model.replay import Inspection
    from gradtrend.replay.inspect import inspect_capture

    try:
        return inspect_capture(contents, shown)
    except GradtrendError as error:  # written to since it was opened
        kind = contents.summary.kind
        return Inspection(path=shown, kind=kind, step=None, rank=None, model=None, problem=error.message)


def first_run(contents: CaptureContents, device: str, precision: str) -> str:
    """What the first run of a trusted capture's step gives. Raises `ReplayError`, and what the model raises."""
    from gradtrend.replay.engine import first_run as run
    from gradtrend.replay.imports import needed_imports

    return run(contents, needed_imports(contents), device, precision)


def unreadable(path: str, kind: str, problem: str) -> Replay:
    """The result for a capture that could not even be read."""
    from gradtrend.model.replay import Inspection, Outcome, Replay

    inspection = Inspection(path=path, kind=kind, step=None, rank=None, model=None, problem=problem)
    return Replay(inspection, Outcome.CANNOT_RUN, why=(problem,))


def with_findings(replay: Replay, rules: Sequence[Rule]) -> Replay:
    """The replay with the findings of the rules that hold for it."""
    from gradtrend.replay.conclude import findings

    return findings.with_findings(replay, rules)


def _untrusted(inspection: Inspection) -> Replay:
    from gradtrend.model.replay import Outcome, Replay
    from gradtrend.replay.imports import DO_NOT_TRUST

    if inspection.problem is not None:
        return unreadable(inspection.path, inspection.kind, inspection.problem)
    why = ["Nothing was run.", *_seen_in_the_file(inspection)]
    if not inspection.looks_bad:
        why.append("The capture names no bad parameter, and its inputs and state are finite.")
    return Replay(
        inspection, Outcome.INSPECTED, why=tuple(why), hint=DO_NOT_TRUST if inspection.refused else _NEEDS_TRUST
    )


def _seen_in_the_file(inspection: Inspection) -> Iterator[str]:
    """What is non-finite as it lies there, which needs no run."""
    if inspection.nonfinite:
        first = inspection.nonfinite[0]
        more = f" and {len(inspection.nonfinite) - 1} more" if len(inspection.nonfinite) > 1 else ""
        yield f"Already non-finite in the file: {first.role} {first.name}{more}."


def _replay(contents: CaptureContents, inspection: Inspection, options: ReplayOptions) -> Replay:
    from gradtrend.replay.imports import DO_NOT_TRUST

    if inspection.problem is not None:
        return unreadable(inspection.path, inspection.kind, inspection.problem)
    try:
        try:
            from gradtrend.replay.engine import replay_step
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingPackageError("replaying needs torch", "pip install 'gradtrend[replay]'") from error
        if inspection.refused:
            raise ReplayError(f"refused: {inspection.refused[0]}", DO_NOT_TRUST)
        return replay_step(contents, inspection, options)
    except GradtrendError as error:
        return _cannot_run(inspection, error)


def _announcement(inspections: Sequence[Inspection]) -> str:
    run = [inspection for inspection in inspections if inspection.problem is None and not inspection.refused]
    names = dict.fromkeys(name for inspection in run for name in inspection.imports)
    return f"--trust: importing and calling {', '.join(names)}" if names else ""


def _cannot_run(inspection: Inspection, error: GradtrendError) -> Replay:
    """The result where the step could not be run, and why."""
    from gradtrend.model.replay import Outcome, Replay

    return Replay(
        inspection,
        Outcome.CANNOT_RUN,
        why=(f"Cannot run: {error.message.rstrip('.')}.", *_seen_in_the_file(inspection)),
        hint=error.hint,
    )
