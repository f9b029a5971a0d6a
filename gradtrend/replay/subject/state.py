"""The captured values put into a rebuilt model, and what does not fit said by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch

from gradtrend.errors import ReplayError
from gradtrend.model.contents import WRAPPER_PREFIXES, CaptureContents, Node, TensorRef
from gradtrend.replay.subject.revive import revive
from gradtrend.replay.subject.tensors import read_tensor

_SHOWN = 5  # names of a difference that are listed
MODEL_CHANGED = "Replay with the code and package versions that the run was trained with; the model has changed since."


def load_state(
    contents: CaptureContents, model: torch.nn.Module, device: torch.device, permitted: Collection[str]
) -> None:
    """Put the captured values into the model, one tensor at a time, in the type they were captured in.

    Raises `ReplayError` naming the entries that are missing, unknown or of another shape.
    """
    captured = _without_prefix(contents.state, model)
    wanted = model.state_dict(keep_vars=True)
    _compare(captured, wanted)
    model.to(device)
    with torch.no_grad():
        for name, tensor in model.state_dict(keep_vars=True).items():
            node = captured[name]
            if isinstance(tensor, torch.Tensor) and isinstance(node, TensorRef):
                tensor.data = read_tensor(contents, node).to(device)
    for name in wanted:
        if name.endswith("_extra_state"):
            owner = model.get_submodule(name.rpartition(".")[0])
            owner.set_extra_state(revive(contents, captured[name], permitted))


def modes_of(contents: CaptureContents, model: torch.nn.Module) -> dict[str, bool] | None:
    """Which modules are in training mode, by name; None where the capture does not say."""
    if contents.eval_modules is None:
        return None
    names = [name for name, _ in model.named_modules()]
    chosen = _matching(contents.eval_modules, names)
    return {name: name not in chosen for name in names}


def trained_of(contents: CaptureContents, model: torch.nn.Module) -> dict[str, bool]:
    """Which parameters are trained, by name: as captured, else as the freshly built model has it."""
    if contents.frozen_parameters is None:
        return {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    names = [name for name, _ in model.named_parameters()]
    frozen = _matching(contents.frozen_parameters, names)
    return {name: name not in frozen for name in names}


def _matching(captured: Collection[str], names: Collection[str]) -> set[str]:
    """Those of `names` that the capture names, also where one of the two has the prefix of a wrapper."""
    if set(captured) <= set(names):
        return set(captured)
    wanted = {bare(name) for name in captured}
    return {name for name in names if bare(name) in wanted}


def bare(name: str) -> str:
    """A module's or parameter's name without the prefixes of wrappers; the wrapped module itself is the empty name."""
    parts = name.split(".")
    wrappers = {prefix.rstrip(".") for prefix in WRAPPER_PREFIXES}
    while parts and parts[0] in wrappers:
        parts = parts[1:]
    return ".".join(parts)


def _without_prefix(state: Mapping[str, Node], model: torch.nn.Module) -> Mapping[str, Node]:
    """The state's names as the bare model has them: wrappers (DDP, compile, Fabric) put a prefix before all."""
    wanted = set(model.state_dict())
    while state and not wanted & set(state):
        prefix = next((p for p in WRAPPER_PREFIXES if all(name.startswith(p) for name in state)), None)
        if prefix is None:
            break
        state = {name.removeprefix(prefix): node for name, node in state.items()}
    return state


def _compare(captured: Mapping[str, Node], wanted: Mapping[str, Any]) -> None:
    differences = [
        *_difference("the rebuilt model lacks", [name for name in captured if name not in wanted]),
        *_difference("the capture lacks", [name for name in wanted if name not in captured]),
        *_difference("of another shape", _other_shapes(captured, wanted)),
        *_difference("no tensor in the capture", _no_tensors(captured, wanted)),
    ]
    if differences:
        raise ReplayError("the captured state does not fit the rebuilt model: " + "; ".join(differences), MODEL_CHANGED)


def _other_shapes(captured: Mapping[str, Node], wanted: Mapping[str, Any]) -> list[str]:
    pairs = ((name, captured.get(name), tensor) for name, tensor in wanted.items() if hasattr(tensor, "shape"))
    return [
        f"{name} {tuple(node.shape)} for {tuple(tensor.shape)}"
        for name, node, tensor in pairs
        if isinstance(node, TensorRef) and tuple(node.shape) != tuple(tensor.shape)
    ]


def _no_tensors(captured: Mapping[str, Node], wanted: Mapping[str, Any]) -> list[str]:
    tensors = (name for name, value in wanted.items() if isinstance(value, torch.Tensor))
    return [name for name in tensors if name in captured and not isinstance(captured[name], TensorRef)]


def _difference(what: str, names: list[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return [f"{what} {', '.join(names[:_SHOWN])}{more}"]
