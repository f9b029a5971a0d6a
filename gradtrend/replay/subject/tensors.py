"""References -> real tensors, and trees of them. Runs nothing of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    with contents.file.open("rb") as file:
        file.seek(span.start)
        read = bytearray(file.read(span.size))
    if len(read) < span.size:
        raise ReplayError(f"{contents.file}: the file was cut while it was read", "Copy it again.")
    data = torch.frombuffer(read, dtype=torch.uint8)
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


def map_tensors(tree: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The nested batch with every tensor changed; lists, tuples (also named ones) and dicts keep their type."""
    if isinstance(tree, torch.Tensor):
        return change(tree)
    if isinstance(tree, dict):
        return {key: map_tensors(value, change) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(map_tensors(value, change) for value in tree))
    if isinstance(tree, list | tuple):
        return type(tree)(map_tensors(value, change) for value in tree)
    return tree


def named_tensors(tree: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of a nested batch with their path, which starts with `name`."""
    if isinstance(tree, torch.Tensor):
        yield name, tree
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from named_tensors(value, f"{name}: {key}" if ":" not in name else f"{name}.{key}")
    elif isinstance(tree, list | tuple):
        for index, value in enumerate(tree):
            yield from named_tensors(value, f"{name}[{index}]")
