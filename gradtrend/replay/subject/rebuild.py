"""The model and its step from a capture. Imports and runs the user's code: only ever reached with the user's trust."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch

from gradtrend.errors import ReplayError
from gradtrend.model.contents import CaptureContents
from gradtrend.recording.trees import map_tensors
from gradtrend.replay.subject import rng
from gradtrend.replay.subject.loss import loss_function
from gradtrend.replay.subject.precision import DEFAULT_LOSS_SCALE
from gradtrend.replay.subject.put_back import put_outside
from gradtrend.replay.subject.revive import import_path, parameters_of, revive
from gradtrend.replay.subject.state import MODEL_CHANGED, load_state, modes_of, trained_of
from gradtrend.replay.subject.subject import Subject


def rebuild(contents: CaptureContents, device: torch.device, permitted: Collection[str]) -> Subject:
    """The captured step, ready to run on `device`; `permitted` are the classes and functions that may be loaded.

    Raises `ReplayError` saying what is missing or different: a package, a class, arguments, parameters.
    """
    model, step = _model_and_step(contents, permitted)
    load_state(contents, model, device, permitted)
    outside = put_outside(contents, model, permitted)
    batches = [
        map_tensors(revive(contents, batch, permitted), lambda t: t.to(device)) for batch in contents.microbatches
    ]
    states = {name: revive(contents, node, permitted) for name, node in contents.rng.items()}
    subject = Subject(
        model=model,
        compute_loss=loss_function(model, step, contents.summary.step or 0, device),
        reload=lambda: load_state(contents, model, device, permitted),
        batches=batches,
        device=device,
        random_states=states,
        modes=modes_of(contents, model),
        trained=trained_of(contents, model),
        outside=outside,
        loss_divisor=contents.loss_divisor or float(len(batches)),
        loss_scale=contents.loss_scale or DEFAULT_LOSS_SCALE,
        notes=list(_differences(contents, model, states, device)),
    )
    subject.remember()
    _check_random_states(subject)
    return subject


def _model_and_step(contents: CaptureContents, permitted: Collection[str]) -> tuple[torch.nn.Module, Any]:
    """The model with its captured arguments, and the step function where its factory gives one, else None."""
    made = _made(contents, permitted)
    model, step = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, torch.nn.Module):
        raise ReplayError(f"{contents.recipe.path} gave a {type(model).__name__}, not a torch.nn.Module", MODEL_CHANGED)
    return model, step


def _made(contents: CaptureContents, permitted: Collection[str]) -> Any:
    recipe = contents.recipe
    module, name = recipe.path.split(":", 1) if ":" in recipe.path else recipe.path.rpartition(".")[::2]
    factory = import_path(module, name)
    keywords = dict(revive(contents, dict(recipe.keywords), permitted))
    if recipe.kind == "class" and "load_weights" in parameters_of(factory):
        keywords["load_weights"] = False  # the capture brings the weights; nothing is downloaded
    try:
        return factory(**keywords)
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise ReplayError(f"building {recipe.path} failed: {type(error).__name__}: {error}", MODEL_CHANGED) from error


def _differences(
    contents: CaptureContents, model: torch.nn.Module, states: Mapping[str, Any], device: torch.device
) -> Iterator[str]:
    """Sentences about what is not as it was when the step was captured."""
    captured_on = contents.backend.get("device")
    yield from rng.missing(states, device, captured_on if isinstance(captured_on, str) else None)
    captured_with = contents.versions.get("torch")
    if captured_with is not None and captured_with != torch.__version__:
        yield f"Captured with torch {captured_with}, replayed with {torch.__version__}."
    if any(hasattr(module, "_orig_mod") or module._compiled_call_impl is not None for module in model.modules()):
        yield "The model is compiled; it is replayed without compiling, whose kernels round otherwise."


def _check_random_states(subject: Subject) -> None:
    try:
        rng.restore(subject.random_states, subject.device)
    except (ValueError, TypeError, RuntimeError, AttributeError, IndexError) as error:
        subject.random_states = {}
        subject.notes.append(f"The random state could not be restored ({error}): dropout and the like differ.")
