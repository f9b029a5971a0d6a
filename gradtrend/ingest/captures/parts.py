"""The parts of a capture, each checked as it is taken from what the file holds.

Who needs a part that is missing or of the wrong kind gets an `InputError` that names it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.reading.numbers import INT64_LIMIT
from gradtrend.model.contents import WRAPPER_PREFIXES, Node, TensorRef

MAX_TEXT = 1000  # characters of a name or version
_MAX_WRAPPERS = 10  # around one another
_MAX_MICROBATCHES = 10_000


def mapping(path: Path, tree: Mapping[str, Node], field: str, optional: bool = False) -> Mapping[str, Node]:
    """A field that is a mapping; {} for an optional one that is missing."""
    value = tree.get(field)
    if value is None and optional:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{path}: the capture's field {field!r} is missing or of the wrong kind", "Capture it again.")
    return value


def text(path: Path, tree: Mapping[str, Node], field: str) -> str:
    """A field that is a text of some length."""
    value = tree.get(field)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        raise InputError(f"{path}: the capture's field {field!r} is missing or no text", "Capture it again.")
    return value


def state(path: Path, node: Node) -> dict[str, Node]:
    """The model's state, with a tensor at least."""
    if not isinstance(node, Mapping) or not any(isinstance(value, TensorRef) for value in node.values()):
        raise InputError(f"{path}: the capture holds no model state", "Capture the step again.")
    return {str(name): value for name, value in node.items()}


def microbatches(path: Path, tree: Mapping[str, Node]) -> tuple[Node, ...]:
    """The microbatches, one at least."""
    value = tree.get("microbatches")
    if not isinstance(value, list | tuple) or not value:
        raise InputError(f"{path}: the capture holds no microbatches", "Capture the step again.")
    if len(value) > _MAX_MICROBATCHES:
        raise InputError(f"{path}: the capture holds {len(value):,} microbatches", "Do not trust this file.")
    return tuple(value)


def bare_names(node: Node, state: Node) -> tuple[str, ...]:
    """Parameter names as in the model state: without the prefixes that wrappers add."""
    names = node if isinstance(node, list | tuple) else ()
    known = state if isinstance(state, Mapping) else {}
    return tuple(_bare_name(name, known) for name in names if isinstance(name, str) and len(name) <= MAX_TEXT)


def _bare_name(name: str, known: Mapping[str, Node]) -> str:
    for _ in range(_MAX_WRAPPERS):
        prefix = next((prefix for prefix in WRAPPER_PREFIXES if name.startswith(prefix)), None)
        if name in known or prefix is None:
            break
        name = name.removeprefix(prefix)
    return name


def integer(node: Node) -> int | None:
    """A step, rank or count: an integer of 64 bits, None for anything else."""
    return node if isinstance(node, int) and not isinstance(node, bool) and abs(node) < INT64_LIMIT else None


def number(node: Node, finite: bool = True) -> float | None:
    """A number that a float can hold; `finite` says that NaN and infinities are none."""
    if isinstance(node, int) and not isinstance(node, bool) and node.bit_length() < 1000:  # what a float can hold
        return float(node)
    return node if isinstance(node, float) and (math.isfinite(node) or not finite) else None
