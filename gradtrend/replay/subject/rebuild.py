"""The model and its step from a capture. Imports and runs the user's code: only ever reached with the user's trust."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from gradtrend.errors import ReplayError
from gradtrend.model.contents import CaptureContents, Node, TensorRef
from gradtrend.replay.subject import rng
from gradtrend.replay.subject.precision import DEFAULT_LOSS_SCALE
from gradtrend.replay.subject.revive import import_path, revive
from gradtrend.replay.subject.subject import Subject
from gradtrend.replay.subject.tensors import map_tensors, read_tensor

_PREFIXES = ("module.", "_orig_mod.", "_forward_module.")
_SHOWN = 5  # names of a difference that are listed
_CHANGED = "Replay with the code and package versions that the run was trained with; the model has changed since."


class SingleProcess:
    """What a LightlyTrain step may ask of the Fabric it is given, for one process."""

    world_size = 1
    global_rank = 0
    local_rank = 0
    is_global_zero = True

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def __getattr__(self, name: str) -> Any:
        raise ReplayError(f"the model's training_step uses fabric.{name}, which a replay does not offer")


def rebuild(contents: CaptureContents, device: torch.device) -> Subject:
    """The captured step, ready to run on `device`.

    Raises `ReplayError` saying what is missing or different: a package, a class, arguments, parameters.
    """
    made = _make(contents)
    model, step = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, torch.nn.Module):
        raise ReplayError(f"{contents.recipe.path} gave a {type(model).__name__}, not a torch.nn.Module", _CHANGED)
    load_state(contents, model, device)
    batches = [map_tensors(revive(contents, batch), lambda t: t.to(device)) for batch in contents.microbatches]
    states = {name: revive(contents, node) for name, node in contents.rng.items()}
    subject = Subject(
        model=model,
        compute_loss=_loss_of(contents, model, step, device),
        reload=lambda: load_state(contents, model, device),
        batches=batches,
        device=device,
        random_states=states,
        loss_divisor=contents.loss_divisor or float(len(batches)),
        loss_scale=contents.loss_scale or DEFAULT_LOSS_SCALE,
    )
    captured_on = contents.backend.get("device")
    subject.notes.extend(rng.missing(states, device, captured_on if isinstance(captured_on, str) else None))
    subject.notes.extend(_version_differences(contents))
    if any(hasattr(module, "_orig_mod") or module._compiled_call_impl is not None for module in model.modules()):
        subject.notes.append("The model is compiled; it is replayed without compiling, whose kernels round otherwise.")
    subject.remember()
    _check_random_states(subject)
    return subject


def _check_random_states(subject: Subject) -> None:
    try:
        rng.restore(subject.random_states, subject.device)
    except (ValueError, TypeError, RuntimeError, AttributeError, IndexError) as error:
        subject.random_states = {}
        subject.notes.append(f"The random state could not be restored ({error}): dropout and the like differ.")


def _make(contents: CaptureContents) -> Any:
    recipe = contents.recipe
    module, name = recipe.path.split(":", 1) if ":" in recipe.path else recipe.path.rpartition(".")[::2]
    factory = import_path(module, name)
    keywords = dict(revive(contents, dict(recipe.keywords)))
    if recipe.kind == "class" and "load_weights" in _parameters(factory):
        keywords["load_weights"] = False  # the capture brings the weights; nothing is downloaded
    try:
        return factory(**keywords)
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise ReplayError(f"building {recipe.path} failed: {type(error).__name__}: {error}", _CHANGED) from error


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


# --- the state --------------------------------------------------------------------------------------------------------


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
    extra = [name for name in wanted if name.endswith("_extra_state")]
    for name in extra:
        owner = model.get_submodule(name.rpartition(".")[0])
        owner.set_extra_state(revive(contents, captured[name]))


def _without_prefix(state: Mapping[str, Node], model: torch.nn.Module) -> Mapping[str, Node]:
    """The state's names as the bare model has them: wrappers (DDP, compile, Fabric) put a prefix before all."""
    wanted = set(model.state_dict())
    while state and not wanted & set(state):
        prefix = next((p for p in _PREFIXES if all(name.startswith(p) for name in state)), None)
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
        raise ReplayError("the captured state does not fit the rebuilt model: " + "; ".join(differences), _CHANGED)


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


def _version_differences(contents: CaptureContents) -> list[str]:
    captured = contents.versions.get("torch")
    if captured is None or captured == torch.__version__:
        return []
    return [f"Captured with torch {captured}, replayed with {torch.__version__}."]


# --- the loss ---------------------------------------------------------------------------------------------------------


def _loss_of(
    contents: CaptureContents, model: torch.nn.Module, step: Any, device: torch.device
) -> Callable[[Any, int], torch.Tensor]:
    call = _caller(contents, model, step, device)

    def compute_loss(batch: Any, index: int) -> torch.Tensor:
        return _find_loss(call(batch, index))

    return compute_loss


def _caller(
    contents: CaptureContents, model: torch.nn.Module, step: Any, device: torch.device
) -> Callable[[Any, int], Any]:
    """How the loss is made: the factory's own step function, the model's training_step, or the model itself."""
    if step is not None:
        return lambda batch, index: step(model, batch)
    training_step: Any = getattr(model, "training_step", None)
    if training_step is None:
        return lambda batch, index: model(**batch) if isinstance(batch, dict) else model(batch)
    if "fabric" in _parameters(training_step):
        fabric, number = SingleProcess(device), contents.summary.step or 0
        return lambda batch, index: training_step(fabric=fabric, batch=batch, step=number)
    if len(_parameters(training_step)) == 1:
        return lambda batch, index: training_step(batch)
    return training_step  # type: ignore[no-any-return]


def _find_loss(result: Any) -> torch.Tensor:
    """The loss in what a step gives: a tensor, something with `loss`, or the first of a tuple."""
    if isinstance(result, Mapping):
        result = result.get("loss")
    elif hasattr(result, "loss"):
        result = result.loss
    elif isinstance(result, list | tuple) and result:
        result = result[0]
    if not isinstance(result, torch.Tensor) or result.numel() != 1:
        raise ReplayError(f"the step gave no scalar loss but {type(result).__name__}", "Give the loss as a 0-d tensor.")
    return result.reshape(())
