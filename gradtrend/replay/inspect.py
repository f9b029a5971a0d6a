"""What a capture says without running anything and without torch: names, shapes, and values already non-finite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradtrend.model.contents import CaptureContents, GlobalRef, Inert, Node, TensorRef
from gradtrend.model.replay import Field, Inspection, TensorHealth

_CHUNK = 4_000_000  # elements looked at together: keeps the boolean copies under 8 MB
_MAX_FIELDS = 200  # leaves of a microbatch that are listed
_MAX_LISTED = 20_000  # of all microbatches
_MAX_KEY = 100  # characters of a batch's key that are shown
_BUFFER_NAMES = ("running_mean", "running_var", "num_batches_tracked")
_FLOATS = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": np.uint16}


def inspect_capture(contents: CaptureContents, shown: str) -> Inspection:
    """Everything that can be said of a capture as it lies in the file; `shown` is its path for the report."""
    summary = contents.summary
    return Inspection(
        path=shown,
        kind=summary.kind,
        step=summary.step,
        rank=summary.rank,
        model=summary.model_class,
        bad_parameters=summary.bad_parameters,
        parameters=len(contents.state),
        microbatches=tuple(_listed(contents.microbatches)),
        precision=contents.precision,
        loss=contents.loss,
        gradient_norm=contents.gradient_norm,
        versions=tuple(sorted(contents.versions.items())),
        nonfinite=tuple(_nonfinite(contents)),
        imports=_needed_imports(contents),
        notes=tuple(_notes(contents)),
    )


def _notes(contents: CaptureContents) -> Iterator[str]:
    if contents.summary.kind == "lightly-train":
        yield "Its buffers (BatchNorm statistics) are those after the bad step; LightlyTrain saves them then."
        if contents.precision is None:
            yield "It does not say at which precision the run was trained."
        yield "Its random state was taken before the batch was loaded, and holds no python or numpy state."


def _needed_imports(contents: CaptureContents) -> tuple[str, ...]:
    """What a replay would import and call, by name: the model's recipe and every object its arguments hold."""
    names = dict.fromkeys([contents.recipe.path])
    for tree in (contents.recipe.keywords, contents.microbatches):
        names.update(dict.fromkeys(ref.path for ref in _globals(tree)))
    return tuple(name for name in names if name.partition(".")[0] not in ("builtins", "__builtin__"))


def _globals(tree: Node) -> Iterator[GlobalRef]:
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, GlobalRef):
            yield node
        elif isinstance(node, dict):
            pending.extend(node.values())
        elif isinstance(node, list | tuple):
            pending.extend(node)
        elif isinstance(node, Inert):
            pairs = [part for pair in node.pairs for part in pair]
            pending.extend([node.callee, *node.arguments, *node.keywords.values(), *node.state, *node.items, *pairs])


# --- microbatches -----------------------------------------------------------------------------------------------------


def _listed(batches: Sequence[Node]) -> Iterator[tuple[Field, ...]]:
    """The fields of each microbatch, none for those behind the first thousands."""
    left = _MAX_LISTED
    for batch in batches:
        found = islice(leaves(batch, whole_lists=True), min(left, _MAX_FIELDS))
        fields = tuple(_field(name, node) for name, node in found)
        left -= len(fields)
        yield fields


def leaves(tree: Node, name: str = "", whole_lists: bool = False) -> Iterator[tuple[str, Node]]:
    """The leaves of a batch with their path (`image`, `views[0]`); a list of plain values is one leaf.

    `whole_lists`: so is a list of tensors that are alike (one a sample).
    """
    if isinstance(tree, dict):
        for key, value in tree.items():
            part = _key_name(key)
            yield from leaves(value, f"{name}.{part}" if name else part, whole_lists)
    elif _is_branch(tree) and not (whole_lists and _alike(tree)):
        for index, value in enumerate(tree):
            yield from leaves(value, f"{name}[{index}]", whole_lists)
    else:
        yield name, tree


def _key_name(key: Node) -> str:
    if isinstance(key, tuple):
        return f"({', '.join(map(_key_name, key))})"
    return str(key[:_MAX_KEY] if isinstance(key, str | bytes) else key)


def _is_branch(tree: Node) -> bool:
    return isinstance(tree, list | tuple) and any(isinstance(part, TensorRef | dict | list | tuple) for part in tree)


def _alike(parts: Sequence[Node]) -> bool:
    kinds = {(part.dtype, part.shape) if isinstance(part, TensorRef) else None for part in parts}
    return len(kinds) == 1 and None not in kinds and len(parts) > 2


def _field(name: str, node: Node) -> Field:
    if isinstance(node, TensorRef):
        return Field(name, node.dtype, node.shape)
    if isinstance(node, list | tuple) and any(isinstance(part, TensorRef) for part in node):
        return Field(name, f"{type(node).__name__} of {node[0].dtype}", (len(node), *node[0].shape))
    if isinstance(node, list | tuple):
        kinds = sorted({type(part).__name__ for part in node})
        return Field(name, f"{type(node).__name__} of {', '.join(kinds)}", (len(node),))
    if isinstance(node, Inert):
        return Field(name, node.callee.path if isinstance(node.callee, GlobalRef) else "object", ())
    return Field(name, type(node).__name__, ())


# --- values already non-finite ----------------------------------------------------------------------------------------


def _nonfinite(contents: CaptureContents) -> Iterator[TensorHealth]:
    known: dict[TensorRef, tuple[int, int, int]] = {}  # tied weights, or one batch named a thousand times
    for role, name, ref in _tensors(contents):
        counts = known.get(ref)
        if counts is None:
            counts = known[ref] = _counts(contents, ref)
        if any(counts):
            yield TensorHealth(role, name, ref.dtype, ref.shape, *counts)


def _tensors(contents: CaptureContents) -> Iterator[tuple[str, str, TensorRef]]:
    """Role, name and reference of every tensor of the inputs and the state."""
    for index, batch in enumerate(contents.microbatches):
        for name, node in leaves(batch):
            if isinstance(node, TensorRef):
                yield "input", f"microbatch {index}: {name}" if name else f"microbatch {index}", node
    for name, node in contents.state.items():
        if isinstance(node, TensorRef):
            yield _state_role(contents, name), name, node


def _state_role(contents: CaptureContents, name: str) -> str:
    """ "buffer" or "parameter": as the capture says, else by the names that torch's own layers use."""
    if contents.buffers:
        return "buffer" if name in contents.buffers else "parameter"
    return "buffer" if name.rsplit(".", 1)[-1] in _BUFFER_NAMES else "parameter"


def _counts(contents: CaptureContents, ref: TensorRef) -> tuple[int, int, int]:
    """How many elements are NaN, inf and -inf."""
    nan = positive = negative = 0
    if ref.dtype not in _FLOATS or not ref.numel:
        return nan, positive, negative
    for chunk in _chunks(_view(contents, ref)):
        values = (chunk.astype(np.uint32) << 16).view(np.float32) if ref.dtype == "bfloat16" else chunk
        bad = values[~np.isfinite(values)]
        nan += int(np.isnan(bad).sum())
        positive += int((bad == np.inf).sum())
        negative += int((bad == -np.inf).sum())
    return nan, positive, negative


def _view(contents: CaptureContents, ref: TensorRef) -> NDArray[Any]:
    """The elements of a tensor, straight from the file; a dimension that merely repeats is looked at once."""
    dtype = np.dtype(_FLOATS[ref.dtype])
    span = contents.storages[ref.storage]
    stored = np.memmap(contents.file, np.uint8, "r", span.start, span.size)
    count = span.size // dtype.itemsize
    shape = [1 if step == 0 else size for size, step in zip(ref.shape, ref.stride, strict=True)]
    strides = [step * dtype.itemsize for step in ref.stride]
    typed = np.frombuffer(stored, dtype, count)[ref.offset :]
    return np.lib.stride_tricks.as_strided(typed, shape, strides, writeable=False)


def _chunks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The elements, flat, at most _CHUNK at a time."""
    if array.size <= _CHUNK:
        yield array.reshape(-1)
        return
    if array.flags.c_contiguous:
        array = array.reshape(-1)
    rows = _CHUNK // (array.size // len(array))
    if not rows:  # one row alone is too large
        for row in array:
            yield from _chunks(row)
        return
    for start in range(0, len(array), rows):
        yield array[start : start + rows].reshape(-1)
