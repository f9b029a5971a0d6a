"""What a model carries from step to step outside its state dict: numbers, generators, buffers that are not saved."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from gradtrend.model.capture import OutsideState

_OWN = frozenset(vars(torch.nn.Module()))  # what torch itself keeps in every module
_MAX_TEXT = 1000  # characters of an attribute: a name or a mode; longer ones are no state


def snapshot_outside(model: torch.nn.Module, before: bool) -> OutsideState:
    """The present values; `before` says that they are those from before the step."""
    return OutsideState(
        attributes=dict(plain_attributes(model)),
        generators={name: generator_state(made) for name, made in generators(model)},
        buffers={name: buffer.detach().clone() for name, buffer in transient_buffers(model)},
        before=before,
    )


def plain_attributes(model: torch.nn.Module) -> Iterator[tuple[tuple[str, str], Any]]:
    """Each plain attribute of each module: (module, attribute) and its number, text or None."""
    for module, owner in model.named_modules():
        for name, value in own_attributes(owner):
            if value is None or type(value) in (bool, int, float) or (type(value) is str and len(value) <= _MAX_TEXT):
                yield (module, name), value


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
        "before": outside.before,
    }


def own_attributes(module: torch.nn.Module) -> list[tuple[str, Any]]:
    """The attributes of a module that are not those every module has."""
    attributes: Mapping[str, Any] = vars(module)
    return [(name, value) for name, value in attributes.items() if name not in _OWN]
