"""What one step of a model shows, layer by layer: frozen types that a report can print and serialise."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gradtrend.model.advice import Advice
from gradtrend.model.sweep import SweepRow


class Flow(StrEnum):
    """What the gradient does from the output toward the input."""

    EVEN = "even"
    VANISHING = "vanishing"
    GROWING = "growing"
    UNKNOWN = "unknown"


class Start(StrEnum):
    """A cross-entropy loss beside that of guessing, ln(classes)."""

    AS_GUESSING = "as-guessing"
    FAR_ABOVE = "far-above"
    BELOW = "below"
    DEAD_HEAD = "dead-head"
    ALL_IGNORED = "all-ignored"
    NONFINITE = "non-finite"


class Fit(StrEnum):
    """Whether a batch could be learned by heart."""

    LEARNED = "learned"
    FALLS = "falls"
    STANDS = "stands"
    NONFINITE = "non-finite"
    NOT_TRIED = "not-tried"


@dataclass(frozen=True, slots=True)
class Moments:
    """The values of one or several tensors; complex ones are counted by their real and imaginary parts.

    `mean`, `std` (of all values, not of a sample), `max_abs` and `norm` are of the finite values, `zeros` is the share
    of exact zeros among all, `nonfinite` counts NaN and inf.
    """

    count: int
    mean: float
    std: float
    max_abs: float
    zeros: float
    norm: float
    nonfinite: int = 0


@dataclass(frozen=True, slots=True)
class LayerFlow:
    """The gradient of a module's own parameters. `layer` is the module's name, empty for the model itself.

    `calls` counts how often it ran in the forward pass, 0 where its parameters are used past it or not at all.
    `gradient` is None where none came, and `missing` says why: "frozen", "not-reached". `size` is the gradient's root
    mean square, norm / sqrt(elements), by which layers of different widths can be compared; `ratio` its norm over the
    weights' own. `breaks`: it is far smaller than both neighbours'.
    `shared` names a layer before it that holds the same parameters, which are counted there.
    """

    layer: str
    kind: str
    calls: int
    parameters: int
    weight_norm: float
    gradient: Moments | None = None
    missing: str | None = None
    size: float | None = None
    ratio: float | None = None
    breaks: bool = False
    shared: str | None = None


@dataclass(frozen=True, slots=True)
class LayerOutput:
    """What a module without others below it gave, or a function that a module called (`kind` is then its name).

    All its calls are taken together. `units` are its channels or features where it is a ReLU (`dead` of them are zero
    for the whole batch, of `positions` values each) or a tanh or sigmoid (`saturated` of them lie at the ends of its
    range for the whole batch, and `saturated_share` of all values do); else None.
    """

    layer: str
    kind: str
    calls: int
    values: Moments
    units: int | None = None
    positions: int | None = None
    dead: int | None = None
    saturated: int | None = None
    saturated_share: float | None = None


@dataclass(frozen=True, slots=True)
class DepthTrend:
    """How the gradient's size changes along depth, over the layers with weights of two dimensions or more.

    `slope` is in decades a layer, positive where it shrinks toward the input; `first` and `last` are the layers between
    which it changes (`last` is nearer to the output), `layers` the number of those, `factor` what a layer multiplies it
    by on the way to the input. `broken` names layers whose gradient is far smaller than both neighbours'.
    """

    flow: Flow
    slope: float | None = None
    factor: float | None = None
    layers: int = 0
    first: str | None = None
    last: str | None = None
    broken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LossStart:
    """A cross-entropy beside ln(classes). `function` is what was called, None where the number of classes was given."""

    loss: float
    classes: int
    expected: float
    state: Start
    function: str | None = None


@dataclass(frozen=True, slots=True)
class Overfit:
    """A copy of the model trained on the batch alone, with Adam. `steps` were taken; `problem` says why none, or why
    they ended early.
    """

    state: Fit
    steps: int
    rate: float
    first: float | None = None
    last: float | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One step of a model. `layers` and `outputs` are in the order of the forward pass.

    `training` is whether the model was in training mode. `remarks` are sentences about what stands out, `next` what to
    do about each, both empty where nothing does; `notes` are limits of this look. `start` is None where the loss is no
    cross-entropy, `overfit` where it was switched off.
    """

    loss: float
    gradient_norm: float | None
    device: str
    precision: str
    training: bool
    parameters: int
    layers: tuple[LayerFlow, ...] = ()
    outputs: tuple[LayerOutput, ...] = ()
    trend: DepthTrend = DepthTrend(Flow.UNKNOWN)
    start: LossStart | None = None
    precisions: tuple[SweepRow, ...] = ()
    overfit: Overfit | None = None
    remarks: tuple[str, ...] = ()
    next: tuple[Advice, ...] = ()
    notes: tuple[str, ...] = ()
