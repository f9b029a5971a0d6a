"""References -> real tensors, and trees of them. Runs nothing of the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gradtrend.errors import ReplayError
from gradtrend.model.contents import CaptureContents, Node, TensorRef


def read_tensor(contents: CaptureContents, ref: TensorRef) -> torch.Tensor:
    """The tensor as captured (same strides), on the CPU. Raises `ReplayError` for a type that this torch lacks, and
    for a file that was cut meanwhile.
    """
    dtype: torch.dtype | None = getattr(torch, ref.dtype, None)
    if dtype is None:
        raise ReplayError(f"torch {torch.__version__} has no type {ref.dtype}", "Install a newer torch.")
    span = contents.storages[ref.storage]
    if not span.size:
        return torch.empty(ref.shape, dtype=dtype)
    data = torch.frombuffer(contents.bytes_at(span.start, span.size), dtype=torch.uint8)
    return torch.empty(0, dtype=dtype).set_(data.untyped_storage(), ref.offset, ref.shape, ref.stride)


def build(contents: CaptureContents, node: Node, other: Callable[[Node], Any]) -> Any:
    """A tree with its tensors read and containers copied; `other` turns any stand-in into an object."""
    if isinstance(node, TensorRef):
        return read_tensor(contents, node)
    if isinstance(node, dict):
        return {key: build(contents, value, other) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return type(node)(build(contents, value, other) for value in node)
    if node is None or isinstance(node, bool | int | float | str | bytes):
        return node
    return other(node)
