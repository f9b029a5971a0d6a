"""Where the step is run: the device, what can be imported, and torch's switches."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from gradtrend.errors import ReplayError
from gradtrend.replay.subject.failure import first_line


def choose_device(name: str) -> torch.device:
    """The device of that name; "auto" is the GPU where there is one. Raises `ReplayError` for one that is not there."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        problem = f"the device {name!r} cannot be used ({first_line(error)})"
        raise ReplayError(problem, "Use --device cpu, or auto.") from error
    return device


@contextlib.contextmanager
def importable_from_here() -> Iterator[None]:
    """A training script's own modules lie in the working directory, which a console command does not search."""
    sys.path.insert(0, "")
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove("")


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """Compiled and scripted models run as written: inside optimised code no module or operator could be seen."""
    set_stance = getattr(torch.compiler, "set_stance", None)  # since torch 2.6
    stance: Any = set_stance("force_eager") if set_stance else contextlib.nullcontext()
    with warnings.catch_warnings(), stance, torch.jit.optimized_execution(False):  # type: ignore[attr-defined]
        warnings.filterwarnings("ignore", "Using `torch.compile", UserWarning)  # of the hooks that watch every module
        yield


@contextlib.contextmanager
def backend_as_captured(flags: Mapping[str, bool | str]) -> Iterator[None]:
    """cuDNN's and the deterministic-algorithms switches as the capture found them."""
    before = torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic
    deterministic = torch.are_deterministic_algorithms_enabled()
    try:
        torch.backends.cudnn.benchmark = bool(flags.get("cudnn_benchmark", before[0]))
        torch.backends.cudnn.deterministic = bool(flags.get("cudnn_deterministic", before[1]))
        torch.use_deterministic_algorithms(bool(flags.get("deterministic_algorithms", deterministic)), warn_only=True)
        yield
    finally:
        torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = before
        torch.use_deterministic_algorithms(deterministic)
