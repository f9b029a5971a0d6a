"""Evidence under a run's debug folder: captured bad steps and underflow/overflow reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# What gradtrend's own capture files say of themselves; who writes and who reads them is in other rooms.
CAPTURE_FORMAT = "gradtrend.capture"
CAPTURE_VERSION = 1
# An array of a batch is a dictionary with this one key and its tensor; an object of a class, one of its "module:Class"
# and either its fields by name or the items that it is made of.
ARRAY_KEY = "gradtrend.array"
OBJECT_KEY, FIELDS_KEY, ITEMS_KEY = "gradtrend.object", "fields", "items"


@dataclass(frozen=True, slots=True)
class OutsideState:
    """What a model keeps outside its state dict. `before`: as it was before the step, not as it was left behind.

    `attributes` are plain numbers and texts by (module, attribute), `generators` states and `data` tensors, arrays and
    containers of both likewise; `buffers` those that a state dict leaves out, by name.
    """

    attributes: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    generators: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    buffers: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    before: bool = False


@dataclass(frozen=True, slots=True)
class Capture:
    """A saved bad step, as far as it can be read without building any foreign object.

    `path` is relative to the run folder; `kind` is `lightly-train` or `gradtrend`; `problem` says why the file could
    not be read, else None. `finite`: it records an explosion, with a finite gradient norm and no bad parameter.
    """

    path: str
    kind: str
    step: int | None
    rank: int | None = None
    bad_parameters: tuple[str, ...] = ()
    model_class: str | None = None
    problem: str | None = None
    finite: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of magnitudes in an underflow/overflow report: tensor (`weight`, `input[0]`, `output`), min and max."""

    tensor: str
    abs_min: float
    abs_max: float


@dataclass(frozen=True, slots=True)
class OverflowReport:
    """An underflow/overflow report: the first module whose tensors were non-finite, at which batch.

    `detected` is False for a traced batch that was merely recorded. `batch` counts from 0, as the steps do.
    `frames` are the culprit module's own lines, `largest_before` the largest finite magnitude of the frames before it.
    """

    path: str
    batch: int
    detected: bool
    rank: int | None = None
    module: str | None = None
    module_class: str | None = None
    frames: tuple[Frame, ...] = ()
    largest_before: float | None = None
