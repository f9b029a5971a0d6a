"""What the model keeps outside its state dict: put back as captured, and said where that cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradtrend.recording.outside import (
    copied,
    generators,
    plain_attributes,
    set_generator_state,
)

_SHOWN = 3  # attributes that a sentence names
Place = tuple[str, str]  # module, attribute


@dataclass(slots=True)
class Outside:
    """The values that every run of the step begins with.

    `taken` says whence: "before" or "after" the captured step, or from a freshly built "model". `put_back` are
    attributes and buffers that differed from those of the freshly built one, `tensors` other attributes that it has.
    `data` are attributes that hold tensors, arrays or containers, `names` all attributes by module. A
    generator whose state from before the step is not known runs on from one run to the next: what depends on its
    numbers then shows as differing runs.
    """

    attributes: dict[Place, Any] = field(default_factory=dict)
    states: dict[Place, Any] = field(default_factory=dict)
    put_back: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()
    taken: str = "model"
    refused: tuple[str, ...] = ()
    data: dict[Place, Any] = field(default_factory=dict)
    names: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def runs_on(self) -> bool:
        """Whether a generator of the model's own gives other numbers in each run."""
        return bool(self.states) and self.taken != "before"

    def restore(self, model: torch.nn.Module) -> None:
        """Put the values back into the model."""
        for module, owner in model.named_modules():
            for name in [name for name in vars(owner) if _is_new(name, vars(owner)[name], self.names.get(module))]:
                del vars(owner)[name]
        set_attributes(model, self.attributes)
        for place, value in copied(self.data).items():
            set_attribute(model, place, value)
        for place, generator in () if self.runs_on else generators(model):
            if place in self.states:
                set_generator_state(generator, self.states[place])


def set_attributes(model: torch.nn.Module, values: Mapping[Place, Any]) -> None:
    """Put plain values back where they are others now."""
    for (module, name), value in values.items():
        attributes = vars(model.get_submodule(module))
        if name not in attributes or not same(attributes[name], value):
            attributes[name] = value


def changed_attributes(model: torch.nn.Module, known: Mapping[Place, Any]) -> Iterator[tuple[Place, Any]]:
    """The plain attributes that are not what `known` has, with what they are."""
    for place, value in list(plain_attributes(model)):
        if place in known and not same(known[place], value):
            yield place, value


def as_before(captured: Any, start: Any, end: Any) -> Any:
    """A counter before the step, of its captured value after it and what one step adds; None where it is no number."""
    numbers = (captured, start, end)
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in numbers):
        return None
    return captured - (end - start)


def sentences(outside: Outside, changing: Mapping[Place, Any], guessed: bool) -> Iterator[str]:
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
        names = ", ".join(place_name(place) for place in list(outside.states)[:_SHOWN])
        whence = {"after": "left behind by the step", "model": "of a freshly built model"}.get(outside.taken)
        if whence:
            yield f"The model draws from its own generator ({names}), with the state {whence}: other random numbers."
    if outside.tensors:
        yield f"Outside the state dict, as in a freshly built model: {_listed(outside.tensors)}."
    yield from outside.refused


def set_attribute(model: torch.nn.Module, place: Place, value: Any) -> None:
    module, name = place
    vars(model.get_submodule(module))[name] = value


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and (one == other or (one != one and other != other))  # NaN is itself


def _is_new(name: str, value: Any, known: frozenset[str] | None) -> bool:
    """Whether a run has made this attribute, and it is data: no part of the model, no function in place of its own."""
    return known is not None and name not in known and not callable(value) and not isinstance(value, torch.nn.Parameter)


def _named(outside: Outside, places: tuple[Place, ...]) -> str:
    return _listed([f"{place_name(place)} = {outside.attributes[place]!r}" for place in places])


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(texts[:_SHOWN]) + (f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else "")


def place_name(place: Place) -> str:
    module, attribute = place
    return f"{module}.{attribute}" if module else attribute
