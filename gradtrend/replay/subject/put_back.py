"""The state that a capture holds outside the model's state dict, put into the freshly built model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch

from gradtrend.model.capture import OutsideState
from gradtrend.model.contents import CaptureContents, TensorRef
from gradtrend.recording.outside import (
    copied,
    data_attributes,
    generator_state,
    generators,
    plain_attributes,
    set_generator_state,
)
from gradtrend.recording.trees import as_tensor, map_tensors, named_leaves
from gradtrend.replay.subject.outside import Outside, Place, changed_attributes, place_name, same, set_attribute
from gradtrend.replay.subject.revive import revive
from gradtrend.replay.subject.state import bare
from gradtrend.replay.subject.tensors import build, read_tensor


def put_outside(contents: CaptureContents, model: torch.nn.Module, permitted: Collection[str]) -> Outside:
    """Put what was captured into the freshly built model, and say what every run begins with.

    Raises `ReplayError` for data that take a class or function that is not permitted.
    """
    captured = _with_names_of(model, contents.outside)
    put: list[str] = []
    refused: list[str] = []
    if captured is not None:
        for place, built in changed_attributes(model, captured.attributes):
            if _alike(built, captured.attributes[place]):
                set_attribute(model, place, captured.attributes[place])
                put.append(f"{place_name(place)} = {captured.attributes[place]!r}")
        for name, buffer in model.named_buffers():
            node = captured.buffers.get(name)
            if isinstance(node, TensorRef) and tuple(node.shape) == tuple(buffer.shape):
                value = read_tensor(contents, node).to(buffer.device)
                if not torch.equal(value, buffer):
                    put.append(f"{name} (a buffer)")
                buffer.data = value
        put += _put_data(contents, captured, model, permitted)
        refused = list(_put_generators(contents, model, captured.generators))
    return Outside(
        attributes=dict(plain_attributes(model)),
        states={place: generator_state(generator) for place, generator in generators(model)},
        put_back=tuple(put),
        tensors=tuple(_tensor_attributes(model, captured.data if captured is not None else ())),
        data=copied(dict(data_attributes(model))),
        names={module: frozenset(vars(owner)) for module, owner in model.named_modules()},
        taken="model" if captured is None else "before" if captured.before else "after",
        refused=tuple(refused),
    )


def _with_names_of(model: torch.nn.Module, captured: OutsideState | None) -> OutsideState | None:
    """The captured state with the module names of this model, of which one of the two may be wrapped."""
    names = {name for name, _ in model.named_modules()}
    if captured is None or {module for module, _ in captured.attributes} <= names:
        return captured
    by_bare = {bare(name): name for name in names}

    def renamed(values: Mapping[Place, Any]) -> dict[Place, Any]:
        return {(by_bare.get(bare(module), module), name): value for (module, name), value in values.items()}

    buffers = {bare(name): name for name, _ in model.named_buffers()}
    return OutsideState(
        attributes=renamed(captured.attributes),
        generators=renamed(captured.generators),
        buffers={buffers.get(bare(name), name): value for name, value in captured.buffers.items()},
        data=renamed(captured.data),
        before=captured.before,
    )


def _put_data(
    contents: CaptureContents, captured: OutsideState, model: torch.nn.Module, permitted: Collection[str]
) -> Iterator[str]:
    """Put the tensors, arrays and containers back that differ from those of the fresh model, and name them."""
    modules = dict(model.named_modules())
    for (module, name), node in captured.data.items():
        if module not in modules:
            continue
        value = revive(contents, node, permitted)
        if not _equal(value, vars(modules[module]).get(name)):
            set_attribute(model, (module, name), map_tensors(value, lambda t: t.to(_device_of(model))))
            yield place_name((module, name))


def _device_of(model: torch.nn.Module) -> torch.device:
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


def _equal(one: Any, other: Any) -> bool:
    """Whether two trees have the same leaves at the same places."""
    ours, theirs = list(named_leaves(one)), list(named_leaves(other))
    if [name for name, _ in ours] != [name for name, _ in theirs]:
        return False
    return all(_same_leaf(a, b) for (_, a), (_, b) in zip(ours, theirs, strict=True))


def _same_leaf(one: Any, other: Any) -> bool:
    a, b = as_tensor(one), as_tensor(other)
    if a is None or b is None:
        return a is b and same(one, other)
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.cpu(), b.cpu())


def _put_generators(contents: CaptureContents, model: torch.nn.Module, captured: Mapping[Place, Any]) -> Iterator[str]:
    for place, generator in generators(model):
        if place not in captured:
            yield f"The model's own generator {place_name(place)} was not captured: it draws other numbers."
            continue
        try:
            set_generator_state(generator, build(contents, captured[place], lambda node: node))
        except (ValueError, TypeError, KeyError, RuntimeError, AttributeError) as error:
            yield f"The state of the model's own generator {place_name(place)} does not fit ({error})."


def _alike(one: Any, other: Any) -> bool:
    """Whether one may stand for the other: both numbers, both texts, or one of them None."""
    if one is None or other is None:
        return True
    return isinstance(one, str) == isinstance(other, str) and isinstance(one, bool) == isinstance(other, bool)


def _tensor_attributes(model: torch.nn.Module, captured: Collection[Place]) -> Iterator[str]:
    """The attributes that hold tensors and were not captured."""
    for (module, name), _ in data_attributes(model):
        if (module, name) not in captured:
            yield place_name((module, name))
