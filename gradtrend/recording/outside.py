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
from gradtrend.recording.trees import named_leaves, parts_of, with_parts
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
        buffers={name: buffer.detach().clone() for name, buffer in transient_buffers(model) if _address(buffer)},
        data=copied(dict(data_attributes(model))),
        before=before,
    )


def plain_attributes(model: torch.nn.Module) -> Iterator[tuple[tuple[str, str], Any]]:
    """Each plain attribute of each module: (module, attribute) and its number, text or None."""
    for module, owner in model.named_modules():
        for name, value in own_attributes(owner):
            if value is None or type(value) in (bool, int, float) or (type(value) is str and len(value) <= _MAX_TEXT):
                yield (module, name), value


def data_attributes(model: torch.nn.Module) -> Iterator[tuple[tuple[str, str], Any]]:
    """Each attribute that holds tensors, arrays or containers of data: (module, attribute) and itself.

    Not those of a size that only a cache has, and not parameters by another name, as the flat weights of an LSTM are.
    """
    own = {address for tensor in (*model.parameters(), *model.buffers()) if (address := _address(tensor))}
    for module, owner in model.named_modules():
        for name, value in own_attributes(owner):
            holds = isinstance(value, torch.Tensor | np.ndarray) or parts_of(value) is not None
            if holds and _is_data(value, own):
                yield (module, name), value


def _is_data(tree: Any, own: Collection[int]) -> bool:
    """Whether every leaf is a tensor, an array or a plain value, and there are not too many elements."""
    left = _MAX_ELEMENTS
    for _, leaf in named_leaves(tree):
        array = isinstance(leaf, torch.Tensor | np.ndarray)
        left -= int(np.prod(leaf.shape)) if array else 1
        if left < 0 or not (leaf is None or isinstance(leaf, _DATA)) or isinstance(leaf, torch.nn.Parameter):
            return False
        if isinstance(leaf, torch.Tensor) and (leaf.layout is not torch.strided or _address(leaf) in own):
            return False
    return True


def _address(tensor: torch.Tensor) -> int:
    """Where its data lie; 0 for one that has none: sparse, not made yet, on no device."""
    lazy = torch.nn.parameter.is_lazy(tensor)
    return 0 if lazy or tensor.layout is not torch.strided or tensor.device.type == "meta" else tensor.data_ptr()


def copied(values: Mapping[tuple[str, str], Any]) -> dict[tuple[str, str], Any]:
    """The values with their tensors, arrays and containers copied; a container that two of them share stays shared."""
    known: dict[int, Any] = {}
    return {place: _copied(value, known) for place, value in values.items()}


def _copied(tree: Any, known: dict[int, Any]) -> Any:
    if id(tree) in known:
        return known[id(tree)]
    parts = parts_of(tree)
    if isinstance(tree, torch.Tensor):
        made: Any = tree.detach().clone().requires_grad_(tree.requires_grad)
    elif isinstance(tree, np.ndarray):
        made = tree.copy()
    elif parts is None:
        return tree
    else:
        made = with_parts(tree, [_copied(part, known) for part in parts.values()])
    known[id(tree)] = made
    return made


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
