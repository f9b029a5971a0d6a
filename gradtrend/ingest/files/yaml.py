"""YAML beside logs: Lightning's hparams.yaml, MLflow's meta.yaml. On its own: a YAML parser takes long to load.

Aliases let a file of a kilobyte stand for billions of values. Parsing shares them, but whoever walks or merges them
does not, so what a document comes to is counted before it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from gradtrend.ingest.files.regular import read_regular
from gradtrend.ingest.limits import LARGEST_SETTINGS, MOST_SETTINGS

_MAX_NUMBER = 400  # characters: YAML has numbers to the base 60, whose digits cost time by the square
# What the parser raises for a file that is no YAML, or has values that are none: a date in month 13, a float of 1e999.
_DAMAGE = (OSError, yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError, ArithmeticError)


class _AnyTagLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the C one is ten times faster
    """Reads YAML that Lightning wrote for arbitrary objects: their tags are dropped, no object is built."""


def _drop_tag(loader: Any, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None


_AnyTagLoader.add_multi_constructor("", _drop_tag)


def read_yaml(path: Path) -> Mapping[str, Any]:
    """The mapping in a YAML file, empty where it is none, or comes to more than settings ever do."""
    content = _content(path)
    return content if isinstance(content, Mapping) else {}


def read_yaml_list(path: Path) -> list[str]:
    """The words of a list in a YAML file; as `read_yaml`."""
    content = _content(path)
    return [word for word in content if isinstance(word, str)] if isinstance(content, list) else []


def _content(path: Path) -> Any:
    try:
        loader = _AnyTagLoader(read_regular(path, LARGEST_SETTINGS))
        try:
            node = loader.get_single_node()
            return None if node is None or _size(node, {}) > MOST_SETTINGS else loader.construct_document(node)
        finally:
            loader.dispose()
    except _DAMAGE:
        return None


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """The number of nodes with every alias written out; infinitely many, so to speak, where a node holds itself."""
    if isinstance(node, yaml.ScalarNode):
        number = node.tag.endswith((":int", ":float"))
        return MOST_SETTINGS + 1 if number and len(node.value) > _MAX_NUMBER else 1
    if id(node) not in known:
        known[id(node)] = MOST_SETTINGS + 1  # until it is known: met again below itself, it is endless
        parts = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
        known[id(node)] = min(MOST_SETTINGS + 1, 1 + sum(_size(part, known) for part in parts))
    return known[id(node)]
