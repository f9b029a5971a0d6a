"""The values of a capture that are already non-finite, counted in the file without torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradtrend.model.contents import CaptureContents, TensorRef
from gradtrend.model.replay import TensorHealth
from gradtrend.replay.inspect.fields import leaves

_CHUNK = 1_000_000  # elements looked at together: with their copies some megabytes
_BUFFER_NAMES = ("running_mean", "running_var", "num_batches_tracked")
_FLOATS = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": np.uint16}


def nonfinite_tensors(contents: CaptureContents) -> Iterator[TensorHealth]:
    """Every tensor of the inputs and the state that holds NaN or inf, with how many."""
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
    for chunk in _elements(contents, ref):
        values = (chunk.astype(np.uint32) << 16).view(np.float32) if ref.dtype == "bfloat16" else chunk
        bad = values[~np.isfinite(values)]
        nan += int(np.isnan(bad).sum())
        positive += int((bad == np.inf).sum())
        negative += int((bad == -np.inf).sum())
    return nan, positive, negative


def _elements(contents: CaptureContents, ref: TensorRef) -> Iterator[NDArray[Any]]:
    """The elements of a tensor, flat, at most _CHUNK at a time; a dimension that merely repeats is looked at once.

    They are read and not mapped into memory: a file that is cut meanwhile would kill the process.
    Raises `InputError` for one that is.
    """
    dtype, start = np.dtype(_FLOATS[ref.dtype]), contents.storages[ref.storage].start
    shape = [1 if step == 0 else size for size, step in zip(ref.shape, ref.stride, strict=True)]
    count = 1 + sum((size - 1) * step for size, step in zip(shape, ref.stride, strict=True))
    dense = _is_dense(shape, ref.stride)
    for first in range(0, count, _CHUNK if dense else count):
        piece = min(count - first, _CHUNK) if dense else count
        place = start + (ref.offset + first) * dtype.itemsize
        typed = np.frombuffer(contents.bytes_at(place, piece * dtype.itemsize), dtype)
        if dense:
            yield typed
        else:
            strides = [step * dtype.itemsize for step in ref.stride]
            yield from _chunks(np.lib.stride_tricks.as_strided(typed, shape, strides, writeable=False))


def _is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether every element between the first and the last is one of the tensor, once, in whatever order."""
    expected = 1
    for step, size in sorted(zip(strides, shape, strict=True)):
        if size > 1 and step != expected:
            return False
        expected *= size
    return True


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
