"""What the pickle of a capture may hold: far more than any real one does, far less than would take long or much memory.

A memo lets a few bytes name a large value again and again, so whatever is walked or copied each time has to be small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gradtrend.errors import InputError
from gradtrend.model.contents import GlobalRef, Inert, Node, TensorRef

_MAX_INTEGER_BITS = 1024  # the states of random generators have 128; Python prints no integer of more than 14,000
_MAX_NAME = 1000  # characters of a class's path
_MAX_KEY_PARTS = 16
_MAX_KEYWORDS = 100
MAX_BUILT = 128 * 1024 * 1024  # bytes that known calls may build: arrays in protocol 2 are text that becomes bytes
_BYTES_AN_ITEM = 100  # of a dictionary
# What a capture's tree may hold: beyond this a shared sub-tree has been repeated until it is endless.
_MAX_NODES = 500_000
_MAX_DEPTH = 200


def refuse(message: str) -> InputError:
    """The error for a file that torch.save cannot have written."""
    return InputError(f"damaged or hostile file: {message}", "Capture the step again, or copy the file again.")


def constant(value: Node) -> Node:
    """A constant as it stands in the pickle. Raises `InputError` for an integer that no capture needs."""
    if isinstance(value, int) and value.bit_length() > _MAX_INTEGER_BITS:
        raise refuse(f"it holds an integer of {value.bit_length():,} bits")
    return value


def key(node: Node) -> Node:
    """A dictionary key: a scalar, or a short flat tuple of them (hashing anything deeper could take for ever)."""
    parts = node if isinstance(node, tuple) else (node,)
    if len(parts) > _MAX_KEY_PARTS:
        raise refuse("it uses a long tuple as a key")
    for part in parts:
        if isinstance(part, int) and part.bit_length() > 64:  # chosen integers all share one hash
            raise refuse("it uses huge integers as keys")
        if not isinstance(part, str | bytes | int | float | bool | GlobalRef | None):
            raise refuse("it uses an object as a dictionary key")
    return node


def class_name(module: Any, name: Any) -> GlobalRef:
    """The name of a class or function. Raises `InputError` where it is none."""
    if not isinstance(name, str) or not isinstance(module, str):
        raise refuse("it names a class by something that is no text")
    if len(module) + len(name) > _MAX_NAME:
        raise refuse(f"it names a class with {len(module) + len(name):,} characters")
    return GlobalRef(module, name)


def keywords(node: Node) -> dict[str, Node]:
    """The keywords of a call, {} for none. Raises `InputError` where they are no names, or too many."""
    if node is None:
        return {}
    if not isinstance(node, dict) or len(node) > _MAX_KEYWORDS or not all(isinstance(name, str) for name in node):
        raise refuse("it calls with keywords that are no dictionary of names")
    return node


def built_bytes(arguments: tuple[Node, ...]) -> int:
    """About how much memory a known call may build from its arguments."""
    texts = sum(len(part) for part in arguments if isinstance(part, str))
    items = sum(len(part) for part in arguments if isinstance(part, list | tuple | dict))
    return texts + items * _BYTES_AN_ITEM


def check_size(tree: Node) -> None:
    """Raise `InputError` for a tree that is endless or too deep: before what walks it without counting."""
    for _ in tensors(tree):
        pass


def tensors(tree: Node) -> Iterator[TensorRef]:
    """Every tensor in an inert tree. Raises `InputError` where the tree is endless or too deep."""
    pending: list[tuple[Node, int]] = [(tree, 0)]
    seen = 0
    while pending:
        node, depth = pending.pop()
        if isinstance(node, TensorRef):
            yield node
            continue
        children = _children(node)
        seen += len(children)  # counted before they are kept: one list may hold itself a million times
        if seen > _MAX_NODES or depth > _MAX_DEPTH:
            raise InputError("damaged or hostile file: its contents nest without end", "Do not trust this file.")
        pending.extend((child, depth + 1) for child in children)


def _children(node: Node) -> list[Node]:
    if isinstance(node, Mapping):
        return list(node.values())
    if isinstance(node, list | tuple):
        return list(node)
    if isinstance(node, Inert):
        return node.parts
    return []
