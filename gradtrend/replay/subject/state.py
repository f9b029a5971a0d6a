"""The captured values put into a rebuilt model, and what does not fit said by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from gradtrend.errors import ReplayError
from gradtrend.model.contents import WRAPPER_PREFIXES, CaptureContents, Node, TensorRef
from gradtrend.replay.subject.revive import revive
from gradtrend.replay.subject.tensors import read_tensor

_SHOWN = 5  # names of a difference that are listed
MODEL_CHANGED = "Replay with the code and package versions that the run was trained with; the model has changed since."


def load_state(contents: CaptureContents, model: torch.nn.Module, device: torch.device) -> None:
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
            owner.set_extra_state(revive(contents, captured[name]))


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
