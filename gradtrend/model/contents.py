"""What a capture file holds, as inert values: references to tensors, and stand-ins for objects that are not built."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradtrend.model.capture import Capture, OutsideState

# Wrappers put these before a parameter's name: Fabric, DistributedDataParallel, torch.compile. They may be nested.
WRAPPER_PREFIXES = ("_forward_module.", "module.", "_orig_mod.")

# An inert tree: None, bool, int, float, str, bytes, list, tuple, dict, TensorRef, GlobalRef or Inert.
Node = Any


@dataclass(frozen=True, slots=True)
class GlobalRef:
    """The name of a class or function that a file mentions; nothing is imported."""

    module: str
    name: str

    @property
    def path(self) -> str:
        """`module.name`."""
        return f"{self.module}.{self.name}"


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor as the file declares it. `offset` and `stride` count elements; `storage` is the storage's key."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    storage: str
    parameter: bool = False
    subclass: str | None = None

    @property
    def numel(self) -> int:
        """Number of elements of the view (an expanded view has more than its storage)."""
        return math.prod(self.shape)

    @property
    def distinct(self) -> int:
        """The same without the dimensions that merely repeat (stride 0)."""
        return math.prod(1 if step == 0 and size else size for size, step in zip(self.shape, self.stride, strict=True))


@dataclass(slots=True, eq=False)
class Inert:
    """Stands in for an object of any class that the reader does not build.

    `callee` is what the file would have called with `arguments` and `keywords`; `call` says how: "reduce" (the callee
    itself), "new" (its `__new__`) or "fields" (an empty object, whose attributes are the keywords). `state`, `items`
    and `pairs` are what would have gone to `__setstate__`, `append` and `__setitem__`.

    Not frozen: an object may hold itself, so the reader makes it before it knows the parts, and adds them as they come.
    Nobody else writes to it.
    """

    callee: GlobalRef | Inert
    call: str
    arguments: tuple[Node, ...] = ()
    keywords: Mapping[str, Node] = field(default_factory=dict)
    state: list[Node] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    pairs: list[tuple[Node, Node]] = field(default_factory=list)

    @property
    def parts(self) -> list[Node]:
        """Every node that it holds."""
        pairs = [part for pair in self.pairs for part in pair]
        return [self.callee, *self.arguments, *self.keywords.values(), *self.state, *self.items, *pairs]


@dataclass(frozen=True, slots=True)
class StorageSpan:
    """Where the bytes of one storage lie in the file."""

    start: int
    size: int


@dataclass(frozen=True, slots=True)
class ModelRecipe:
    """How the model is made: `kind` is "class" (path called with the keyword arguments) or "factory"."""

    kind: str
    path: str
    keywords: Mapping[str, Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CaptureContents:
    """A capture, whole and inert, in one form for every kind of file.

    `bytes_at` gives bytes of the file by start and length, and raises `InputError` where it has changed since it was
    opened; `state` is the model's state dict (tensors, and extra state where a module has some); `rng`
    holds inert states by generator (`python`, `numpy`, `torch`, `cuda`). `precision` is one of
    `gradtrend.model.precision.PRECISIONS`, or None where the file does not say; `loss_divisor` divides each
    microbatch's loss before backward. `loss_scale` is the factor in use, None without. `eval_modules` were not in
    training mode, `frozen_parameters` not trained: None where the file does not say. `baseline_norm` and
    `baseline_norms` are gradient norms of a usual step, of all and by parameter.
    """

    summary: Capture
    recipe: ModelRecipe
    state: Mapping[str, Node]
    microbatches: tuple[Node, ...]
    storages: Mapping[str, StorageSpan] = field(default_factory=dict)
    bytes_at: Callable[[int, int], bytearray] = lambda start, size: bytearray(size)
    rng: Mapping[str, Node] = field(default_factory=dict)
    precision: str | None = None
    loss_scale: float | None = None
    loss_divisor: float | None = None
    gradient_norm: float | None = None
    loss: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    backend: Mapping[str, bool | str] = field(default_factory=dict)
    buffers: frozenset[str] = frozenset()
    eval_modules: frozenset[str] | None = None
    frozen_parameters: frozenset[str] | None = None
    outside: OutsideState | None = None
    baseline_norm: float | None = None
    world_size: int | None = None
    baseline_norms: Mapping[str, float] = field(default_factory=dict)
