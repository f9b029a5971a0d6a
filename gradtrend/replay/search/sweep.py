"""The same step in every precision, and the same run several times."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from gradtrend.model.replay import Repeats, SweepRow
from gradtrend.replay.run.ranges import ModuleRanges
from gradtrend.replay.run.step import StepResult, run_step
from gradtrend.replay.subject.failure import named
from gradtrend.replay.subject.precision import computing_type
from gradtrend.replay.subject.subject import Subject

_SWEPT = ("float32", "bfloat16", "float16", "float16-scaled", "float64")
_REPEATS = 3  # two agree by chance half of the time when a step fails every other time; Megatron re-runs twice as well
_REPEATS_IN_DOUBT = 6  # when the first ones disagree, or a captured failure does not show
# A kernel that adds in another order each time differs by the rounding of the type, some 1e-7 in float32 and up to 1e-3
# after a backward pass in half precision; more than this is another result.
SPREAD_LIMIT = 1e-2


def precisions_for(device: torch.device, known: str | None) -> tuple[str, ...]:
    """The precisions to sweep: all of `_SWEPT`, TF32 on CUDA, and the run's own."""
    tf32 = ("float32-tf32",) if device.type == "cuda" else ()
    own = (known,) if known is not None else ()
    return tuple(dict.fromkeys((*_SWEPT, *tf32, *own)))


def sweep(subject: Subject, precisions: Sequence[str]) -> tuple[tuple[SweepRow, ...], dict[str, Exception]]:
    """One row a precision, and the errors of those that could not be run."""
    errors: dict[str, Exception] = {}
    return tuple(_row(subject, precision, errors) for precision in precisions), errors


def _row(subject: Subject, precision: str, errors: dict[str, Exception]) -> SweepRow:
    ranges = ModuleRanges(subject.model)
    try:
        result = run_step(subject, precision, watch=ranges)
    except Exception as error:  # an operator without a kernel for this type, out of memory, the user's own code
        errors[precision] = error
        return SweepRow(precision, finite=None, problem=named(error))
    headroom = ranges.headroom
    if ranges.first_bad:
        headroom = _exceeded(ranges, precision) if ranges.overflowed else None
    return SweepRow(
        precision=precision,
        finite=result.finite,
        loss=result.loss,
        gradient_norm=result.gradient_norm,
        bad_parameters=len(result.bad_parameters),
        first_bad_module=ranges.first_bad,
        largest=ranges.largest,
        headroom=headroom,
    )


def _exceeded(ranges: ModuleRanges, precision: str) -> float | None:
    """Headroom up to the first bad module; none is left there."""
    limit = math.log10(torch.finfo(computing_type(precision)).max)
    return min(ranges.headroom if ranges.headroom is not None else limit, 0.0)


def repeat(subject: Subject, precision: str, expected_bad: bool) -> tuple[Repeats, StepResult]:
    """Several runs of the same, more where the outcome is in doubt; and the first that fails, else the first."""
    results = [run_step(subject, precision) for _ in range(_REPEATS)]
    failures = sum(not result.finite for result in results)
    if 0 < failures < _REPEATS or (expected_bad and failures == 0):
        results += [run_step(subject, precision) for _ in range(_REPEATS_IN_DOUBT - _REPEATS)]
        failures = sum(not result.finite for result in results)
    first = next((result for result in results if not result.finite), results[0])
    return Repeats(len(results), failures, _identical(results), _spread(results)), first


def _identical(results: Sequence[StepResult]) -> bool:
    """Whether all runs gave the same to the last bit, each microbatch's loss included."""
    return all(repr(result) == repr(results[0]) for result in results)  # repr: NaN equals NaN


def _spread(results: Sequence[StepResult]) -> float:
    """The largest relative difference of loss or norm between the runs that are finite."""
    finite = [result for result in results if result.finite]
    columns = ([result.loss for result in finite], [result.gradient_norm or 0.0 for result in finite])
    return max((_relative_range(column) for column in columns if column), default=0.0)


def _relative_range(values: Sequence[float]) -> float:
    largest = max(abs(value) for value in values)
    return (max(values) - min(values)) / largest if largest else 0.0
