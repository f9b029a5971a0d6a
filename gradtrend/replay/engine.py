"""One capture from rebuilding to verdict."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from gradtrend.errors import GradtrendError, ReplayError
from gradtrend.model.contents import CaptureContents
from gradtrend.model.replay import Inspection, ModuleFrame, Origin, Replay, SweepRow, precision_of_setting
from gradtrend.replay.conclude import verdict
from gradtrend.replay.conclude.facts import Facts, with_explanation
from gradtrend.replay.run import layers, step
from gradtrend.replay.run import ranges as observe
from gradtrend.replay.search import blame as blaming
from gradtrend.replay.search import locate, swap, sweep
from gradtrend.replay.subject import rebuild
from gradtrend.replay.subject.subject import Subject

_Result = TypeVar("_Result")


def replay_step(
    contents: CaptureContents, inspection: Inspection, device: str, precision: str | None, setting: str | None
) -> Replay:
    """Rebuild and run the captured step, and judge it.

    Raises `ReplayError` where it cannot be rebuilt or run. What the model prints goes to standard error.
    """
    with contextlib.redirect_stdout(sys.stderr), _importable_from_here(), _eager():
        subject = rebuild.rebuild(contents, choose_device(device))
        known = precision or contents.precision or precision_of_setting(setting)
        if known == "float32-tf32" and subject.device.type != "cuda":
            known = "float32"  # only CUDA has it
        with _backend_as_captured(contents):
            return _Study(contents, inspection, subject, known).result()


def choose_device(name: str) -> torch.device:
    """The device of that name; "auto" is the GPU where there is one. Raises `ReplayError` for one that is not there."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise ReplayError(f"the device {name!r} cannot be used ({first})", "Use --device cpu, or auto.") from error
    return device


@contextlib.contextmanager
def _importable_from_here() -> Any:
    """A training script's own modules lie in the working directory, which a console command does not search."""
    sys.path.insert(0, "")
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove("")


def _eager() -> contextlib.AbstractContextManager[Any]:
    """Compiled models run as written: inside compiled code no module or operator could be seen."""
    set_stance = getattr(torch.compiler, "set_stance", None)  # since torch 2.6
    return contextlib.nullcontext() if set_stance is None else set_stance("force_eager")


@contextlib.contextmanager
def _backend_as_captured(contents: CaptureContents) -> Any:
    """cuDNN's and the deterministic-algorithms switches as the capture found them."""
    flags = contents.backend
    before = torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic
    deterministic = torch.are_deterministic_algorithms_enabled()
    try:
        torch.backends.cudnn.benchmark = bool(flags.get("cudnn_benchmark", before[0]))
        torch.backends.cudnn.deterministic = bool(flags.get("cudnn_deterministic", before[1]))
        torch.use_deterministic_algorithms(bool(flags.get("deterministic_algorithms", deterministic)), warn_only=True)
        yield
    finally:
        torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = before
        torch.use_deterministic_algorithms(deterministic)


@dataclass(slots=True)
class _Study:
    contents: CaptureContents
    inspection: Inspection
    subject: Subject
    known: str | None

    def result(self) -> Replay:
        rows = sweep.sweep(self.subject, sweep.precisions_for(self.subject.device, self.known))
        precision = self.known or _first_failing(rows) or "float32"
        row = next(row for row in rows if row.precision == precision)
        if row.finite is None:
            raise ReplayError(f"running the step in {precision} failed: {row.problem}", _RUN_HINT)
        repeats, first = sweep.repeat(self.subject, precision, self.inspection.expects_bad or row.finite is False)
        facts = Facts(
            inspection=self.inspection,
            logged_norm=self.contents.gradient_norm,
            precision=precision,
            known=self.known is not None,
            scale_assumed=self.contents.loss_scale is None,
            device=str(self.subject.device),
            rows=rows,
            repeats=repeats,
            first=first,
        )
        if repeats.failures:
            facts = self._explain(facts)
        return verdict.judge(facts, self._layers(precision), tuple(self.subject.notes))

    def _explain(self, facts: Facts) -> Facts:
        """Where the failure starts, and in what of the batch."""
        located = self._try("locating", lambda: locate.locate(self.subject, facts.precision))
        origin = located.origin if located else None
        needs_backward = math.isfinite(facts.first.loss)
        blamed = self._try("bisecting", lambda: blaming.blame(self.subject, facts.precision, needs_backward))
        swapped = None
        if origin is not None:
            module = origin.module
            swapped = self._try("swapping", lambda: swap.swap(self.subject, facts.precision, module))
        return with_explanation(facts, origin, blamed, swapped, self._frames(facts.precision, origin))

    def _try(self, what: str, work: Callable[[], _Result]) -> _Result | None:
        """The user's model may refuse to be watched or given part of a batch; the verdict then stands without that."""
        try:
            return work()
        except GradtrendError:
            raise
        except Exception as error:
            self.subject.notes.append(f"{what.capitalize()} failed: {type(error).__name__}: {error}")
            return None

    def _frames(self, precision: str, origin: Origin | None) -> tuple[ModuleFrame, ...]:
        ranges = observe.ModuleRanges(self.subject.model, until=origin.module if origin and origin.module else None)
        self._try("measuring", lambda: step.run_step(self.subject, precision, backward=False, watch=ranges))
        return tuple(ranges.frames)

    def _layers(self, precision: str) -> Any:
        scale = self.subject.loss_scale if precision == "float16-scaled" else 1.0
        step.run_step(self.subject, precision)
        return layers.layer_gradients(self.subject.model, scale)


_RUN_HINT = "Try --device cpu or another --precision; the message is from the model's own code."


def _first_failing(rows: Sequence[SweepRow]) -> str | None:
    return next((row.precision for row in rows if row.finite is False), None)
