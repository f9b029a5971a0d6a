"""The microbatches of a capture: their leaves by name, as they lie in the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from gradtrend.model.contents import GlobalRef, Inert, Node, TensorRef
from gradtrend.model.replay import Field

_MAX_FIELDS = 200  # leaves of a microbatch that are listed
_MAX_LISTED = 20_000  # of all microbatches
_BRANCHES = (TensorRef, dict, list, tuple, Inert)  # what holds, or is, a tensor
_MAX_KEY = 100  # characters of a batch's key that are shown


def fields_of(batches: Sequence[Node]) -> Iterator[tuple[Field, ...]]:
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
    elif isinstance(tree, Inert) and (inner := _inner(tree)):
        for key, value in inner.items():
            yield from leaves(value, f"{name}.{key}" if name and key else name or key, whole_lists)
    elif _is_branch(tree) and not (whole_lists and _alike(tree)):
        for index, value in enumerate(tree):
            yield from leaves(value, f"{name}[{index}]", whole_lists)
    else:
        yield name, tree


def _inner(tree: Inert) -> dict[str, Node]:
    """The parts of an object that hold tensors: its fields, or what it is made of; {} where none does."""
    numbered = {f"[{index}]": part for index, part in enumerate(tree.arguments)}
    parts = {**numbered, **tree.keywords}
    if len(parts) == 1:  # an array, or a wrapper around one thing
        parts = {"": next(iter(parts.values()))}
    return parts if any(isinstance(part, _BRANCHES) for part in parts.values()) else {}


def _key_name(key: Node) -> str:
    if isinstance(key, tuple):
        return f"({', '.join(map(_key_name, key))})"
    return str(key[:_MAX_KEY] if isinstance(key, str | bytes) else key)


def _is_branch(tree: Node) -> bool:
    return isinstance(tree, list | tuple) and any(isinstance(part, _BRANCHES) for part in tree)


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
