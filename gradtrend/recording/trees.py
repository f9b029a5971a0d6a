"""Nested batches as trees: the parts of a container, the same container with other parts, and walks over them."""

from __future__ import annotations

import copy
import dataclasses
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

_DEEPEST = 30  # containers in one another; batches nest three or four


def parts_of(tree: Any) -> Mapping[Any, Any] | None:
    """The parts of a container by key, place or field; None for a leaf, such as a tensor, an array or a text."""
    if isinstance(tree, dict | UserDict):
        return tree
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return dict(zip(tree._fields, tree, strict=True))
    if isinstance(tree, list | tuple):
        return dict(enumerate(tree))
    if isinstance(tree, SimpleNamespace):
        return vars(tree)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return {
            field.name: getattr(tree, field.name) for field in dataclasses.fields(tree) if hasattr(tree, field.name)
        }
    return None


def with_parts(tree: Any, values: Sequence[Any]) -> Any:
    """The container with these parts in place of its own, in their order; its class stays, the old one is untouched."""
    parts = parts_of(tree)
    assert parts is not None
    named = dict(zip(parts, values, strict=True))
    if type(tree) is dict:
        return named
    if isinstance(tree, list | tuple):
        return type(tree)(*values) if hasattr(tree, "_fields") else type(tree)(values)
    made = copy.copy(tree)
    for name, value in named.items():
        if isinstance(tree, dict | UserDict):
            made[name] = value
        else:
            object.__setattr__(made, name, value)  # also of a frozen dataclass
    return made


def map_leaves(tree: Any, change: Callable[[Any], Any], depth: int = 0) -> Any:
    """The tree with every leaf changed; what lies too deep (a container may hold itself) is left as it is."""
    parts = parts_of(tree)
    if parts is None:
        return change(tree)
    if depth > _DEEPEST:
        return tree
    return with_parts(tree, [map_leaves(part, change, depth + 1) for part in parts.values()])


def map_tensors(tree: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The tree with every tensor changed; an array is changed as a tensor and stays an array, on the CPU."""

    def changed(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return change(leaf)
        tensor = as_tensor(leaf)
        return leaf if tensor is None else change(tensor).cpu().numpy()

    return map_leaves(tree, changed)


def as_tensor(leaf: Any) -> torch.Tensor | None:
    """The leaf as a tensor over the same memory; None for what is neither a tensor nor an array of numbers."""
    if isinstance(leaf, torch.Tensor):
        return leaf
    if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufc" and leaf.dtype.isnative and leaf.flags.writeable:
        try:
            return torch.from_numpy(leaf)
        except (TypeError, ValueError):  # a type or strides that torch has not: float128, a reversed view
            return None
    return None


def named_leaves(tree: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The leaves with their path: `image`, `views[0].image`; a container that lies too deep is one."""
    parts = parts_of(tree)
    if parts is None or depth > _DEEPEST:
        yield name, tree
        return
    numbered = isinstance(tree, list | tuple) and not hasattr(tree, "_fields")
    for key, part in parts.items():
        path = f"{name}[{key}]" if numbered else f"{name}.{key}" if name else str(key)
        yield from named_leaves(part, path, depth + 1)
