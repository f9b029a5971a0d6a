"""What a replay found: frozen types that a report can print and serialise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from gradtrend.model.diagnosis import Diagnosis
from gradtrend.model.finding import Finding
from gradtrend.model.sweep import SweepRow as SweepRow

# The smallest positive number of a type (subnormal): what is smaller becomes zero.
SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149}


class Outcome(StrEnum):
    """What a replay came to. `inspected` and `cannot-run` say nothing about the step: neither is a clean result."""

    CONFIRMED = "confirmed"
    FLAKY = "flaky"
    NOT_REPRODUCED = "not-reproduced"
    CANNOT_RUN = "cannot-run"
    INSPECTED = "inspected"


class ReplayCause(StrEnum):
    """Where a confirmed bad step comes from."""

    DATA = "data"
    PRECISION_RANGE = "precision-range"
    LOSS_SCALE = "loss-scale"
    FORWARD_OPERATOR = "forward-operator"
    BACKWARD_OPERATOR = "backward-operator"
    BAD_STATE = "bad-state"
    OTHER_RANK = "other-rank"
    EXPLOSION = "explosion"
    NORM_OVERFLOW = "norm-overflow"


@dataclass(frozen=True, slots=True)
class TensorHealth:
    """A tensor of the capture that holds non-finite values. `role` is "input", "parameter" or "buffer"."""

    role: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    nan: int
    positive_inf: int
    negative_inf: int


@dataclass(frozen=True, slots=True)
class Field:
    """One leaf of a microbatch: a tensor (dtype and shape), or a list (`list of str`, its length)."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a capture says without running anything.

    `imports` is what `--trust` would import and call, `refused` why it would not even so. `notes` are limits of this
    capture that bear on the verdict.
    """

    path: str
    kind: str
    step: int | None
    rank: int | None
    model: str | None
    bad_parameters: tuple[str, ...] = ()
    parameters: int = 0
    microbatches: tuple[tuple[Field, ...], ...] = ()
    precision: str | None = None
    loss: float | None = None
    gradient_norm: float | None = None
    versions: tuple[tuple[str, str], ...] = ()
    nonfinite: tuple[TensorHealth, ...] = ()
    imports: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str | None = None
    world_size: int | None = None

    @property
    def expects_bad(self) -> bool:
        """Whether the capture says that something was non-finite: it names parameters, or recorded such a value."""
        recorded = [value for value in (self.gradient_norm, self.loss) if value is not None]
        return bool(self.bad_parameters) or not all(map(math.isfinite, recorded))

    @property
    def looks_bad(self) -> bool:
        """Whether it says so, or holds non-finite values: only a run could then call the step good."""
        return self.expects_bad or bool(self.nonfinite)


@dataclass(frozen=True, slots=True)
class Repeats:
    """The same run several times. `spread` is the largest relative difference of the loss or gradient norm.

    `fresh_agree`: of runs that differ, whether the first runs of new processes are alike (None: not tried).
    """

    runs: int
    failures: int
    identical: bool
    spread: float
    fresh_agree: bool | None = None


@dataclass(frozen=True, slots=True)
class Magnitude:
    """Absolute range of one tensor's finite elements, and how many are zero, NaN or inf, negative (None: not counted).

    `tensor` is `input[0]`, `output`, or the name of what an operator was given.
    """

    tensor: str
    dtype: str
    shape: tuple[int, ...]
    abs_min: float
    abs_max: float
    zeros: int | None = None
    nonfinite: int | None = None
    negative: int | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """The first operator whose output is non-finite although it was given finite values.

    `source` says where the values come from: "operator" (made here), or "input", "parameter", "buffer", "constant" with
    `source_name` (they were there before). `needs` is the largest magnitude of the same operator computed in float64,
    when that is finite; `type_max` the maximum of the type that the operator ran in. `where` is the user's code line.
    `occurrence` counts the operator's earlier runs in its module; `in_float32` is what it is given when all is float32.
    """

    phase: str
    module: str
    module_class: str
    operator: str
    dtype: str
    source: str
    source_name: str | None = None
    microbatch: int = 0
    nan: int = 0
    inf: int = 0
    given: tuple[Magnitude, ...] = ()
    needs: float | None = None
    type_max: float | None = None
    where: str | None = None
    occurrence: int = 0
    in_float32: tuple[Magnitude, ...] = ()

    @property
    def lost(self) -> tuple[str, Magnitude] | None:
        """What became zero on the way to the operator, and its range in float32.

        "underflow" where it is below the smallest number of the type, "rounding" where larger numbers cancelled.
        """
        for given, wide in zip(self.given, self.in_float32, strict=False):
            if given.shape == wide.shape and (given.zeros or 0) > (wide.zeros or 0) and wide.abs_min > 0:
                return ("underflow" if wide.abs_min < SMALLEST.get(given.dtype, 0.0) else "rounding"), wide
        return None

    @property
    def exceeds_range(self) -> bool:
        """Whether the operator's exact result is finite, and beyond the largest number of its type."""
        return self.needs is not None and self.type_max is not None and self.needs > self.type_max


@dataclass(frozen=True, slots=True)
class ModuleFrame:
    """The range of one tensor of a module shortly before the origin."""

    module: str
    module_class: str
    magnitude: Magnitude


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample that makes the step fail; `identity` is what the batch calls it (a path), if it names its samples."""

    microbatch: int
    index: int
    identity: str | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """The gradient norm of a microbatch alone, or (`sample` given) of one of its samples alone."""

    microbatch: int
    sample: int | None
    norm: float
    identity: str | None = None


@dataclass(frozen=True, slots=True)
class Blame:
    """Which microbatches fail on their own, and which samples in them.

    `cured` says whether the whole step is finite without those samples (None: not tried). `note` says why no sample is
    named, or not of every bad microbatch. `together`: of some microbatch, the samples fail only with one another;
    `by_chance`: some fail only with the random numbers that they drew in this step.
    """

    microbatches: tuple[int, ...]
    samples: tuple[Sample, ...] = ()
    batch_size: int | None = None
    cured: bool | None = None
    note: str | None = None
    together: bool = False
    by_chance: bool = False


@dataclass(frozen=True, slots=True)
class Swap:
    """The failing run again, with one module alone in float32."""

    module: str
    cured: bool | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class LayerGradient:
    """The gradient of one parameter in the replayed step. `ratio` is its norm over the parameter's own.

    `usual` is its norm in a usual step, as the capture has it.
    """

    parameter: str
    norm: float
    zeros: float
    ratio: float | None
    share: float | None
    flags: tuple[str, ...] = ()
    usual: float | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """The replay of one capture. `why` are sentences with numbers, in the order to read them.

    `usual_norm` is the gradient norm of a usual step, by the capture or the run's log; `shares` whose gradient it is.
    `diagnosis` is that of its layers, where one was asked for.
    """

    inspection: Inspection
    outcome: Outcome
    cause: ReplayCause | None = None
    device: str | None = None
    precision: str | None = None
    precision_known: bool = False
    repeats: Repeats | None = None
    sweep: tuple[SweepRow, ...] = ()
    origin: Origin | None = None
    frames: tuple[ModuleFrame, ...] = ()
    bad_parameters: tuple[str, ...] = ()
    blame: Blame | None = None
    swap: Swap | None = None
    layers: tuple[LayerGradient, ...] = ()
    usual_norm: float | None = None
    shares: tuple[Share, ...] = ()
    why: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    hint: str | None = None
    findings: tuple[Finding, ...] = ()
    diagnosis: Diagnosis | None = None
