"""Nested batches: how many samples one holds, some of them alone, and what it calls them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch

# Keys under which batches keep what identifies a sample, the most telling first.
_IDENTITIES = (
    "image_path",
    "path",
    "filename",
    "file_name",
    "file",
    "image_id",
    "sample_id",
    "id",
    "idx",
    "index",
    "uid",
)


def batch_size(batch: Any) -> int | None:
    """The number of samples: the first dimension that most of the tensors and lists share; None where there is none."""
    sizes = Counter(_leading(batch))
    if not sizes:
        return None
    most = max(sizes.values())
    return max(size for size, count in sizes.items() if count == most)


def _leading(tree: Any) -> Iterator[int]:
    if isinstance(tree, torch.Tensor):
        if tree.ndim:
            yield tree.shape[0]
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from _leading(value)
    elif isinstance(tree, list | tuple):
        if _is_sample_list(tree):
            yield len(tree)
        else:
            for value in tree:
                yield from _leading(value)


def _is_sample_list(values: Sequence[Any]) -> bool:
    """A list with one entry a sample (names, numbers, boxes), rather than one of whole-batch tensors (views).

    Tensors of one entry a sample are small or differ in their first dimension; views share it and have more dimensions.
    """
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    if len(tensors) != len(values):
        return not tensors and not any(isinstance(value, dict | list | tuple) for value in values)
    leading = {tensor.shape[0] if tensor.ndim else 0 for tensor in tensors}
    return len(leading) != 1 or leading <= {0, 1}


def take(tree: Any, indices: Sequence[int], size: int) -> Any:
    """The batch with only these samples. What does not have `size` entries is kept as it is."""
    if isinstance(tree, torch.Tensor):
        whole = tree.ndim and tree.shape[0] == size
        return tree[torch.as_tensor(indices, device=tree.device)] if whole else tree
    if isinstance(tree, dict):
        return {key: take(value, indices, size) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        if len(tree) == size and _is_sample_list(tree):
            return _like(tree, [tree[index] for index in indices])
        return _like(tree, [take(value, indices, size) for value in tree])
    return tree


def _like(tree: Any, values: list[Any]) -> Any:
    return type(tree)(*values) if hasattr(tree, "_fields") else type(tree)(values)


def identity(batch: Any, index: int, size: int) -> str | None:
    """What the batch calls its sample `index`: its path or number, where the batch holds those."""
    named = dict(_identity_lists(batch, size))
    key = next((key for wanted in _IDENTITIES for key in named if key.lower() == wanted), None)
    if key is None:
        key = next((key for key, values in named.items() if all(isinstance(value, str) for value in values)), None)
    return None if key is None else str(named[key][index])


def _identity_lists(tree: Any, size: int, key: str = "") -> Iterator[tuple[str, list[Any]]]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _identity_lists(value, size, str(name))
    elif isinstance(tree, torch.Tensor):
        if tree.ndim == 1 and tree.shape[0] == size and not tree.is_floating_point():
            yield key, tree.tolist()
    elif isinstance(tree, list | tuple):
        if len(tree) == size and all(isinstance(value, str | int) for value in tree):
            yield key, list(tree)
        else:
            for value in tree:
                yield from _identity_lists(value, size, key)
