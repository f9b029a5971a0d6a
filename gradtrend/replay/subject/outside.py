"""What the model keeps outside its state dict: put back as captured, and said where that cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gradtrend.model.contents import CaptureContents, TensorRef
from gradtrend.recording.outside import (
    generator_state,
    generators,
    own_attributes,
    plain_attributes,
    set_generator_state,
)
from gradtrend.recording.trees import map_leaves, named_leaves, parts_of
from gradtrend.replay.subject.tensors import build, read_tensor

_DATA = (torch.Tensor, np.ndarray, bool, int, float, str)
_SHOWN = 3  # attributes that a sentence names
_Place = tuple[str, str]  # module, attribute


@dataclass(slots=True)
class Outside:
    """The values that every run of the step begins with.

    `taken` says whence: "before" or "after" the captured step, or from a freshly built "model". `put_back` are
    attributes and buffers that differed from those of the freshly built one, `tensors` other attributes that it has.
    `data` are attributes that hold tensors, arrays or containers, `names` all attributes by module. A
    generator whose state from before the step is not known runs on from one run to the next: what depends on its
    numbers then shows as differing runs.
    """

    attributes: dict[_Place, Any] = field(default_factory=dict)
    states: dict[_Place, Any] = field(default_factory=dict)
    put_back: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()
    taken: str = "model"
    refused: tuple[str, ...] = ()
    data: dict[_Place, Any] = field(default_factory=dict)
    names: dict[str, frozenset[str]] = field(default_factory=dict)

    def restore(self, model: torch.nn.Module) -> None:
        """Put the values back into the model."""
        for module, owner in model.named_modules():
            for name in [name for name in vars(owner) if _is_new(name, vars(owner)[name], self.names.get(module))]:
                del vars(owner)[name]
        set_attributes(model, self.attributes)
        for place, value in self.data.items():
            _set(model, place, map_leaves(value, _copied))
        for place, generator in generators(model) if self.taken == "before" else ():
            if place in self.states:
                set_generator_state(generator, self.states[place])


def put_outside(contents: CaptureContents, model: torch.nn.Module) -> Outside:
    """Put what was captured into the freshly built model, and say what every run begins with."""
    captured = contents.outside
    put: list[str] = []
    refused: list[str] = []
    if captured is not None:
        for place, built in changed_attributes(model, captured.attributes):
            if _alike(built, captured.attributes[place]):
                _set(model, place, captured.attributes[place])
                put.append(f"{_name(place)} = {captured.attributes[place]!r}")
        for name, buffer in model.named_buffers():
            node = captured.buffers.get(name)
            if isinstance(node, TensorRef) and tuple(node.shape) == tuple(buffer.shape):
                value = read_tensor(contents, node).to(buffer.device)
                if not torch.equal(value, buffer):
                    put.append(f"{name} (a buffer)")
                buffer.data = value
        refused = list(_put_generators(contents, model, captured.generators))
    return Outside(
        attributes=dict(plain_attributes(model)),
        states={place: generator_state(generator) for place, generator in generators(model)},
        put_back=tuple(put),
        tensors=tuple(_tensor_attributes(model)),
        data=dict(_data_attributes(model)),
        names={module: frozenset(vars(owner)) for module, owner in model.named_modules()},
        taken="model" if captured is None else "before" if captured.before else "after",
        refused=tuple(refused),
    )


def set_attributes(model: torch.nn.Module, values: Mapping[_Place, Any]) -> None:
    """Put plain values back where they are others now."""
    for (module, name), value in values.items():
        attributes = vars(model.get_submodule(module))
        if name not in attributes or not _same(attributes[name], value):
            attributes[name] = value


def changed_attributes(model: torch.nn.Module, known: Mapping[_Place, Any]) -> Iterator[tuple[_Place, Any]]:
    """The plain attributes that are not what `known` has, with what they are."""
    for place, value in list(plain_attributes(model)):
        if place in known and not _same(known[place], value):
            yield place, value


def as_before(captured: Any, start: Any, end: Any) -> Any:
    """A counter before the step, of its captured value after it and what one step adds; None where it is no number."""
    numbers = (captured, start, end)
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in numbers):
        return None
    return captured - (end - start)


def sentences(outside: Outside, changing: Mapping[_Place, Any], guessed: bool) -> Iterator[str]:
    """What a reader must know; `changing` are the attributes that the step itself changes."""
    if outside.put_back:
        when = "left behind by the step" if outside.taken == "after" else "captured"
        yield f"Outside the state dict, and put back as {when}: {_listed(outside.put_back)}."
    if changing and guessed:
        yield (
            f"The step itself changes {_named(outside, tuple(changing))}, outside the state dict; it was put back to "
            "what it must have been before the step."
        )
    elif changing and outside.taken != "before":
        yield (
            f"The step itself changes {_named(outside, tuple(changing))}, outside the state dict; the replay begins "
            "with the value named here, which need not be the one that the step began with."
        )
    if outside.states:
        names = ", ".join(_name(place) for place in list(outside.states)[:_SHOWN])
        whence = {"after": "left behind by the step", "model": "of a freshly built model"}.get(outside.taken)
        if whence:
            yield f"The model draws from its own random generator ({names}), with the state {whence}: other numbers."
    if outside.tensors:
        yield f"Tensors outside the state dict are those of a freshly built model: {_listed(outside.tensors)}."
    yield from outside.refused


def _put_generators(contents: CaptureContents, model: torch.nn.Module, captured: Mapping[_Place, Any]) -> Iterator[str]:
    for place, generator in generators(model):
        if place not in captured:
            yield f"The state of the model's own generator {_name(place)} was not captured: it draws other numbers."
            continue
        try:
            set_generator_state(generator, build(contents, captured[place], lambda node: node))
        except (ValueError, TypeError, KeyError, RuntimeError, AttributeError) as error:
            yield f"The state of the model's own generator {_name(place)} does not fit ({error})."


def _set(model: torch.nn.Module, place: _Place, value: Any) -> None:
    module, name = place
    vars(model.get_submodule(module))[name] = value


def _alike(one: Any, other: Any) -> bool:
    """Whether one may stand for the other: both numbers, both texts, or one of them None."""
    if one is None or other is None:
        return True
    return isinstance(one, str) == isinstance(other, str) and isinstance(one, bool) == isinstance(other, bool)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and (one == other or (one != one and other != other))  # NaN is itself


def _data_attributes(model: torch.nn.Module) -> Iterator[tuple[_Place, Any]]:
    """The attributes that a step may change in place: tensors, arrays and containers of data."""
    for module, owner in model.named_modules():
        for name, value in own_attributes(owner):
            if isinstance(value, torch.Tensor | np.ndarray) or (parts_of(value) is not None and _is_data(value)):
                yield (module, name), map_leaves(value, _copied)


def _is_data(tree: Any) -> bool:
    """Whether every leaf is a tensor, an array or a plain value; other objects stay who they are."""
    return all(leaf is None or isinstance(leaf, _DATA) for _, leaf in named_leaves(tree))


def _copied(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().clone().requires_grad_(leaf.requires_grad)
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _is_new(name: str, value: Any, known: frozenset[str] | None) -> bool:
    """Whether a run has made this attribute, and it is data: no part of the model, no function in place of its own."""
    return known is not None and name not in known and not callable(value) and not isinstance(value, torch.nn.Parameter)


def _tensor_attributes(model: torch.nn.Module) -> Iterator[str]:
    """The attributes that are tensors, and neither parameters nor buffers."""
    for module, owner in model.named_modules():
        for name, value in vars(owner).items():
            if isinstance(value, torch.Tensor):
                yield _name((module, name))


def _named(outside: Outside, places: tuple[_Place, ...]) -> str:
    return _listed([f"{_name(place)} = {outside.attributes[place]!r}" for place in places])


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(texts[:_SHOWN]) + (f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else "")


def _name(place: _Place) -> str:
    module, attribute = place
    return f"{module}.{attribute}" if module else attribute
