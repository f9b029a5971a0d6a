"""Lightning's hparams.yaml. On its own: most runs have none, and a YAML parser takes long to load."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


class _AnyTagLoader(yaml.SafeLoader):
    """Reads YAML that Lightning wrote for arbitrary objects: their tags are dropped, no object is built."""


def _drop_tag(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None


_AnyTagLoader.add_multi_constructor("", _drop_tag)


def read_yaml(path: Path) -> Mapping[str, Any]:
    """Return the mapping in a YAML file, empty where it is none."""
    try:
        content = yaml.load(path.read_bytes(), Loader=_AnyTagLoader)
    except (OSError, yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return {}
    return content if isinstance(content, Mapping) else {}
