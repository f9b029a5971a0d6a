"""One capture from rebuilding to verdict."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gradtrend.errors import GradtrendError, ReplayError
from gradtrend.model.contents import CaptureContents
from gradtrend.model.precision import precision_of_setting
from gradtrend.model.replay import Inspection, LayerGradient, ModuleFrame, Origin, Repeats, Replay, SweepRow
from gradtrend.replay import ReplayOptions
from gradtrend.replay.conclude.facts import Facts
from gradtrend.replay.conclude.verdict import judge
from gradtrend.replay.diagnose.step import with_diagnosis
from gradtrend.replay.run.layers import layer_gradients
from gradtrend.replay.run.ranges import ModuleRanges
from gradtrend.replay.run.step import run_step
from gradtrend.replay.search.blame import blame
from gradtrend.replay.search.locate import locate, with_float32
from gradtrend.replay.search.settle import settle
from gradtrend.replay.search.shares import outliers, shares
from gradtrend.replay.search.swap import swap
from gradtrend.replay.search.sweep import SPREAD_LIMIT, precisions_for, repeat, sweep
from gradtrend.replay.subject.environment import backend_as_captured, choose_device, eager, importable_from_here
from gradtrend.replay.subject.failure import hint_for, named
from gradtrend.replay.subject.rebuild import rebuild
from gradtrend.replay.subject.subject import Subject

_Result = TypeVar("_Result")
_FRESH_PROCESSES = 2  # each loads torch anew


def replay_step(contents: CaptureContents, inspection: Inspection, options: ReplayOptions) -> Replay:
    """The verdict on the captured step, which is rebuilt and run for it.

    Raises `ReplayError` where it cannot be rebuilt or run. What the model prints goes to standard error.
    """
    with _surroundings():
        subject = rebuild(contents, choose_device(options.device), inspection.imports)
        known = options.precision or contents.precision or precision_of_setting(options.setting)
        if known == "float32-tf32" and subject.device.type != "cuda":
            known = "float32"  # only CUDA has it
        with eager(), backend_as_captured(contents.backend):
            result = _Study(contents, inspection, subject, known, options).result()
            return with_diagnosis(result, subject) if options.layers else result


def first_run(contents: CaptureContents, imports: Sequence[str], device: str, precision: str) -> str:
    """What the very first run of the rebuilt step gives, in digits that tell runs apart beyond rounding.

    Raises what the model raises, and `ReplayError`.
    """
    with _surroundings():
        subject = rebuild(contents, choose_device(device), imports)
        with eager(), backend_as_captured(contents.backend):
            result = run_step(subject, precision)
            return f"{result.finite} {result.loss:.2e} {result.gradient_norm or 0.0:.2e}"


@contextlib.contextmanager
def _surroundings() -> Iterator[None]:
    with contextlib.redirect_stdout(sys.stderr), importable_from_here():
        yield


@dataclass(frozen=True, slots=True)
class _Study:
    """The runs of one step, one after another. `known` is the precision that it was trained in, if that is known."""

    contents: CaptureContents
    inspection: Inspection
    subject: Subject
    known: str | None
    options: ReplayOptions

    def result(self) -> Replay:
        """The verdict, after as many runs as it takes."""
        settle(self.subject, self.known or "float32")
        rows, errors = sweep(self.subject, precisions_for(self.subject.device, self.known))
        precision = self.known or _first_failing(rows) or "float32"
        row = next(row for row in rows if row.precision == precision)
        if row.finite is None:
            raise ReplayError(f"running the step in {precision} failed: {row.problem}", hint_for(errors[precision]))
        facts = self._repeated(rows, row)
        if facts.repeats.failures:
            facts = self._explained(facts)
        elif facts.explodes:
            found = self._try("measuring the samples", lambda: shares(self.subject, precision)) or ()
            facts = replace(facts, shares=found, blame=outliers(found))
        return judge(facts, self._layers(precision), tuple(self.subject.notes))

    def _in_fresh_processes(self, repeats: Repeats, precision: str) -> Repeats:
        """Runs that differ, with whether the first runs of new processes do, which nothing was left behind for."""
        first_run, path = self.options.first_run, self.contents.summary.path
        differ = 0 < repeats.failures < repeats.runs or repeats.spread > SPREAD_LIMIT
        if first_run is None or not differ or self.subject.outside.runs_on:
            return repeats
        firsts = [first_run(path, str(self.subject.device), precision) for _ in range(_FRESH_PROCESSES)]
        return repeats if None in firsts else replace(repeats, fresh_agree=len(set(firsts)) == 1)

    def _repeated(self, rows: tuple[SweepRow, ...], row: SweepRow) -> Facts:
        """What several runs in one precision show."""
        expected_bad = self.inspection.expects_bad or row.finite is False
        repeats, first = repeat(self.subject, row.precision, expected_bad)
        baseline = self.contents.baseline_norm
        return Facts(
            inspection=self.inspection,
            logged_norm=self.contents.gradient_norm,
            precision=row.precision,
            known=self.known is not None,
            scale_assumed=self.contents.loss_scale is None,
            device=str(self.subject.device),
            rows=rows,
            repeats=self._in_fresh_processes(repeats, row.precision),
            first=first,
            usual_norm=baseline if baseline is not None else self.options.usual_norm,
        )

    def _explained(self, facts: Facts) -> Facts:
        """The facts with where the failure starts, and in what of the batch."""
        subject, precision = self.subject, facts.precision
        origin = self._try("locating", lambda: locate(subject, precision))
        if origin is not None and origin.source == "operator" and facts.finite_in("float32"):
            found = origin
            origin = self._try("looking into float32", lambda: with_float32(subject, found)) or origin
        needs_backward = math.isfinite(facts.first.loss)
        blamed = self._try("bisecting", lambda: blame(subject, precision, needs_backward))
        swapped = None
        if origin is not None:
            module = origin.module
            swapped = self._try("swapping", lambda: swap(subject, precision, module))
        return replace(facts, origin=origin, blame=blamed, swap=swapped, frames=self._frames(precision, origin))

    def _try(self, what: str, work: Callable[[], _Result]) -> _Result | None:
        """The user's model may refuse to be watched or given part of a batch; the verdict then stands without that."""
        try:
            return work()
        except GradtrendError:
            raise
        except Exception as error:
            self.subject.notes.append(f"{what.capitalize()} failed: {named(error)}.")
            return None

    def _frames(self, precision: str, origin: Origin | None) -> tuple[ModuleFrame, ...]:
        ranges = ModuleRanges(self.subject.model, until=origin.module if origin and origin.module else None)
        self._try("measuring", lambda: run_step(self.subject, precision, backward=False, watch=ranges))
        return tuple(ranges.frames)

    def _layers(self, precision: str) -> tuple[LayerGradient, ...]:
        run_step(self.subject, precision)
        return layer_gradients(self.subject.model, self.subject.scale_in(precision), self.contents.baseline_norms)


def _first_failing(rows: Sequence[SweepRow]) -> str | None:
    return next((row.precision for row in rows if row.finite is False), None)
