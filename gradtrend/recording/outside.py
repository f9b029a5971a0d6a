"""What a model carries from step to step outside its state dict: numbers, generators, buffers that are not saved."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from gradtrend.model.capture import OutsideState
from gradtrend.recording.trees import map_leaves, named_leaves, parts_of
from gradtrend.recording.values import kept

_OWN = frozenset(vars(torch.nn.Module()))  # what torch itself keeps in every module
_DATA = (torch.Tensor, np.ndarray, bool, int, float, str)
_MAX_ELEMENTS = 1_000_000  # of an attribute: more is a cache of activations, no state
_MAX_TEXT = 1000  # characters of an attribute: a name or a mode; longer ones are no state


def snapshot_outside(model: torch.nn.Module, before: bool) -> OutsideState:
    """The present values; `before` says that they are those from before the step."""
    return OutsideState(
        attributes=dict(plain_attributes(model)),
        generators={name: generator_state(made) for name, made in generators(model)},
        buffers={name: buffer.detach().clone() for name, buffer in transient_buffers(model)},
        data={place: value for place, value in data_attributes(model) if _size(value) <= _MAX_ELEMENTS},
        before=before,
    )


def plain_attributes(model: torch.nn.Module) -> Iterator[tuple[tuple[str, str], Any]]:
    """Each plain attribute of each module: (module, attribute) and its number, text or None."""
    for module, owner in model.named_modules():
        for name, value in own_attributes(owner):
            if value is None or type(value) in (bool, int, float) or (type(value) is str and len(value) <= _MAX_TEXT):
                yield (module, name), value


def data_attributes(model: torch.nn.Module) -> Iterator[tuple[tuple[str, str], Any]]:
    """Each attribute that holds tensors, arrays or containers of data: (module, attribute) and a copy of it."""
    own = {tensor.data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    for module, owner in model.named_modules():
        for name, value in own_attributes(owner):
            holds = isinstance(value, torch.Tensor | np.ndarray) or (parts_of(value) is not None and _is_data(value))
            if holds and not any(_is_one_of(own, leaf) for _, leaf in named_leaves(value)):
                yield (module, name), copied(value)


def _is_one_of(own: Collection[int], leaf: Any) -> bool:
    """Whether it is a parameter or buffer by another name, as the flat weights of an LSTM are."""
    if not isinstance(leaf, torch.Tensor):
        return False
    return isinstance(leaf, torch.nn.Parameter) or (leaf.numel() > 0 and leaf.data_ptr() in own)


def copied(tree: Any) -> Any:
    """The tree with its tensors and arrays copied."""
    return map_leaves(tree, _copied)


def _copied(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().clone().requires_grad_(leaf.requires_grad)
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _is_data(tree: Any) -> bool:
    """Whether every leaf is a tensor, an array or a plain value; other objects stay who they are."""
    return all(leaf is None or isinstance(leaf, _DATA) for _, leaf in named_leaves(tree))


def _size(tree: Any) -> int:
    """How many elements the tensors and arrays have, and leaves there are."""
    leaves = (leaf for _, leaf in named_leaves(tree))
    return sum(int(np.prod(leaf.shape)) if isinstance(leaf, torch.Tensor | np.ndarray) else 1 for leaf in leaves)


def generators(model: torch.nn.Module) -> Iterator[tuple[tuple[str, str], Any]]:
    """Each random generator that a module keeps: (module, attribute) and the generator."""
    for module, owner in model.named_modules():
        for name, value in own_attributes(owner):
            if isinstance(value, torch.Generator | np.random.Generator | random.Random):
                yield (module, name), value


def transient_buffers(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The buffers that a state dict leaves out."""
    for module, owner in model.named_modules():
        for name in sorted(getattr(owner, "_non_persistent_buffers_set", ())):
            buffer = owner._buffers.get(name)
            if isinstance(buffer, torch.Tensor):
                yield f"{module}.{name}" if module else name, buffer


def generator_state(generator: Any) -> Any:
    """The state as a capture keeps it: a tensor for torch's, else text."""
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, random.Random):
        return json.dumps(generator.getstate())
    return json.dumps(generator.bit_generator.state, default=lambda array: array.tolist())


def set_generator_state(generator: Any, state: Any) -> None:
    """Put a state back. Raises `ValueError`, `TypeError`, `KeyError` or `RuntimeError` for one that does not fit."""
    if isinstance(generator, torch.Generator):
        generator.set_state(state.cpu())
    elif isinstance(generator, random.Random):
        version, internal, gauss = json.loads(state)
        generator.setstate((version, tuple(internal), gauss))
    else:
        generator.bit_generator.state = json.loads(state)


def as_payload(outside: OutsideState) -> dict[str, Any]:
    """The form in which a capture file holds it."""
    by_module: dict[str, dict[str, Any]] = {}
    for (module, name), value in outside.attributes.items():
        by_module.setdefault(module, {})[name] = value
    return {
        "attributes": json.dumps(by_module),
        "generators": {f"{module}:{name}": state for (module, name), state in outside.generators.items()},
        "buffers": {name: buffer.to("cpu") for name, buffer in outside.buffers.items()},
        "data": dict(_kept_data(outside)),
        "before": outside.before,
    }


def _kept_data(outside: OutsideState) -> Iterator[tuple[str, Any]]:
    for (module, name), value in outside.data.items():
        with contextlib.suppress(TypeError):  # of a kind that a capture does not keep: the replay will do without
            yield f"{module}:{name}", kept(value, name)


def own_attributes(module: torch.nn.Module) -> list[tuple[str, Any]]:
    """The attributes of a module that are not those every module has."""
    attributes: Mapping[str, Any] = vars(module)
    return [(name, value) for name, value in attributes.items() if name not in _OWN]
