"""Nested batches: how many samples one holds and along which dimension, some of them alone, and what it calls them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gradtrend.recording.trees import named_leaves, parts_of, with_parts

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
# A second dimension is seldom the samples': it counts less than any first one, and decides between two of these.
_SECOND = 0.5


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the samples of a batch lie: their number, and the dimension that is theirs where two have that size.

    `listed`: they lie in lists, whose other parts are no samples.
    """

    size: int
    preferred: int = 0
    listed: bool = False


def layouts_of(batch: Any, time_first: bool) -> list[Layout]:
    """The ways in which the samples of a batch may lie, the likelier first: as `layout_of` has it, then a list of them.

    A list of containers may be views, each of the whole batch, or samples that nobody put together: where their tensors
    have one size, only trying tells.
    """
    first = layout_of(batch, time_first)
    found = [first] if first is not None else []
    lengths = {len(tree) for tree in _lists_of_containers(batch)}
    return found + [Layout(size, listed=True) for size in sorted(lengths) if first is None or size != first.size]


def _lists_of_containers(tree: Any) -> Iterator[Sequence[Any]]:
    if isinstance(tree, list | tuple) and len(tree) > 1 and all(parts_of(one) is not None for one in tree):
        yield tree
    for part in (parts_of(tree) or {}).values():
        yield from _lists_of_containers(part)


def layout_of(batch: Any, time_first: bool) -> Layout | None:
    """The size that most of the tensors and lists share; None where there is none.

    `time_first`: the model has layers that take (time, batch, ...), which decides where nothing else does.
    """
    votes: defaultdict[int, float] = defaultdict(float)
    flat = False  # a list or a tensor with one dimension, which can only be one entry a sample
    for shape in _shapes(batch):
        flat = flat or len(shape) == 1
        votes[shape[0]] += 1
        if len(shape) > 1:
            votes[shape[1]] += _SECOND
    if not votes:
        return None
    if time_first and not flat:
        seconds = Counter(shape[1] for shape in _shapes(batch))
        return Layout(seconds.most_common(1)[0][0], preferred=1)
    most = max(votes.values())
    return Layout(max(size for size, count in votes.items() if count == most), preferred=int(time_first))


def _is_list_of_samples(batch: Any) -> bool:
    """A list of containers whose own tensors do not share a first dimension, as those of a view do."""
    if type(batch) not in (list, tuple) or len(batch) < 2 or any(parts_of(one) is None for one in batch):
        return False
    shapes = [[tuple(leaf.shape) for _, leaf in named_leaves(one) if _is_array(leaf)] for one in batch]
    scalars = all(() in found for found in shapes)
    mixed = all(len({shape[0] for shape in found if shape}) > 1 for found in shapes)
    return scalars or mixed


def is_empty(batch: Any) -> bool:
    """Whether a tensor of it has no sample at all."""
    return any(shape[0] == 0 for shape in _shapes(batch))


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor | np.ndarray)


def _shapes(tree: Any) -> Iterator[tuple[int, ...]]:
    """The shapes of the tensors and arrays, and the lengths of lists that have one entry a sample."""
    if isinstance(tree, torch.Tensor | np.ndarray):
        if tree.ndim:
            yield tuple(tree.shape)
    elif isinstance(tree, list | tuple) and (_is_sample_list(tree) or _is_list_of_samples(tree)):
        if tree:
            yield (len(tree),)
    else:
        for part in (parts_of(tree) or {}).values():
            yield from _shapes(part)


def _is_sample_list(values: Sequence[Any]) -> bool:
    """A list with one entry a sample (names, numbers, boxes), rather than one of whole-batch tensors (views).

    Tensors of one entry a sample are small or differ in their first dimension; views share it and have more dimensions.
    """
    if hasattr(values, "_fields"):
        return False
    tensors = [value for value in values if isinstance(value, torch.Tensor | np.ndarray)]
    if len(tensors) != len(values):
        return not tensors and not any(parts_of(value) is not None for value in values)
    leading = {tensor.shape[0] if tensor.ndim else 0 for tensor in tensors}
    return len(leading) != 1 or leading <= {0, 1}


def take(tree: Any, indices: Sequence[int], layout: Layout) -> Any:
    """The batch with only these samples. What does not have one entry a sample is kept as it is."""
    if isinstance(tree, torch.Tensor | np.ndarray):
        if layout.listed:
            return tree
        dimension = _dimension(tuple(tree.shape), layout)
        if dimension is None:
            return tree
        if isinstance(tree, np.ndarray):
            return np.take(tree, list(indices), axis=dimension)
        return tree.index_select(dimension, torch.as_tensor(list(indices), device=tree.device))
    listed = isinstance(tree, list | tuple) and len(tree) == layout.size
    if listed and (layout.listed or _is_sample_list(tree) or _is_list_of_samples(tree)):
        return type(tree)([tree[index] for index in indices])
    parts = parts_of(tree)
    if parts is None:
        return tree
    return with_parts(tree, [take(part, indices, layout) for part in parts.values()])


def _dimension(shape: tuple[int, ...], layout: Layout) -> int | None:
    order = (0, 1) if layout.preferred == 0 or len(shape) < 2 else (1, 0)
    return next((place for place in order if place < len(shape) and shape[place] == layout.size), None)


def identity(batch: Any, index: int, size: int) -> str | None:
    """What the batch calls its sample `index`: its path or number, where the batch holds those."""
    named = dict(_identity_lists(batch, size))
    key = next((key for wanted in _IDENTITIES for key in named if key.lower() == wanted), None)
    if key is None:
        key = next((key for key, values in named.items() if all(isinstance(value, str) for value in values)), None)
    return None if key is None else str(named[key][index])


def _identity_lists(tree: Any, size: int, key: str = "") -> Iterator[tuple[str, list[Any]]]:
    if isinstance(tree, torch.Tensor | np.ndarray):
        floats = tree.is_floating_point() if isinstance(tree, torch.Tensor) else tree.dtype.kind == "f"
        if tree.ndim == 1 and tree.shape[0] == size and not floats:
            yield key, tree.tolist()
        return
    if isinstance(tree, list | tuple) and len(tree) == size and all(isinstance(value, str | int) for value in tree):
        yield key, list(tree)
        return
    if isinstance(tree, list | tuple) and len(tree) == size and _is_list_of_samples(tree):
        if isinstance(tree[0], dict):
            for name in tree[0]:
                values = [_plain(one.get(name)) for one in tree if isinstance(one, dict)]
                if len(values) == size and all(isinstance(value, str | int) for value in values):
                    yield str(name), values
        return
    for name, value in (parts_of(tree) or {}).items():
        yield from _identity_lists(value, size, str(name) if isinstance(name, str) else key)


def _plain(value: Any) -> Any:
    """A number that lies in a tensor of one."""
    return value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value
