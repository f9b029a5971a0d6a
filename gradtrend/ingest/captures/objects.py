"""What gradtrend's own captures say in plain containers: arrays, objects of a class, and state outside a state dict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gradtrend.model.capture import ARRAY_KEY, FIELDS_KEY, ITEMS_KEY, OBJECT_KEY, OutsideState
from gradtrend.model.contents import GlobalRef, Inert, Node, TensorRef

_MAX_DEPTH = 100  # of a batch's containers; a deeper one is left as it is
_MAX_JSON = 16 * 1024 * 1024


def stand_ins(node: Node, depth: int = 0) -> Node:
    """The tree with every dictionary that speaks of an array or an object as a stand-in for it."""
    if depth > _MAX_DEPTH or not isinstance(node, dict | list | tuple):
        return node
    if not isinstance(node, dict):
        return type(node)(stand_ins(part, depth + 1) for part in node)
    inner = {key: stand_ins(part, depth + 1) for key, part in node.items()}
    if set(inner) == {ARRAY_KEY} and isinstance(inner[ARRAY_KEY], TensorRef):
        return Inert(GlobalRef("numpy", "asarray"), "reduce", (inner[ARRAY_KEY],))
    module, _, name = path.partition(":") if isinstance(path := inner.get(OBJECT_KEY), str) else ("", "", "")
    if module and name and isinstance(fields := inner.get(FIELDS_KEY), dict):
        return Inert(GlobalRef(module, name), "fields", keywords=fields)
    if module and name and isinstance(items := inner.get(ITEMS_KEY), list):
        return Inert(GlobalRef(module, name), "reduce", tuple(items))
    return inner


def outside_state(tree: Mapping[str, Node]) -> OutsideState | None:
    """What the model kept outside its state dict; None where the file does not say."""
    if not tree:
        return None
    generators, buffers, data = tree.get("generators"), tree.get("buffers"), tree.get("data")
    return OutsideState(
        attributes=_attributes(tree.get("attributes")),
        generators={_place(name): state for name, state in generators.items() if isinstance(name, str)}
        if isinstance(generators, Mapping)
        else {},
        buffers={name: node for name, node in buffers.items() if isinstance(node, TensorRef)}
        if isinstance(buffers, Mapping)
        else {},
        data={_place(name): stand_ins(node) for name, node in data.items() if isinstance(name, str)}
        if isinstance(data, Mapping)
        else {},
        before=tree.get("before") is True,
    )


def _attributes(text: Node) -> dict[tuple[str, str], Any]:
    if not isinstance(text, str) or len(text) > _MAX_JSON:
        return {}
    try:
        by_module = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(by_module, dict):
        return {}
    return {
        (module, name): value
        for module, values in by_module.items()
        if isinstance(values, dict)
        for name, value in values.items()
        if value is None or isinstance(value, bool | int | float | str)
    }


def _place(name: str) -> tuple[str, str]:
    module, _, attribute = name.rpartition(":")
    return module, attribute
