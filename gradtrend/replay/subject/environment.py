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
    """Compiled and scripted models run as written: inside optimised code no module or operator could be seen.

    To be entered once the model is built: asking the compiler for this loads all of it, seconds more than torch itself,
    which only a model that is compiled has done already.
    """
    set_stance = getattr(torch.compiler, "set_stance", None) if "torch._dynamo" in sys.modules else None
    stance: Any = set_stance("force_eager") if set_stance else contextlib.nullcontext()
    with warnings.catch_warnings(), stance, torch.jit.optimized_execution(False):  # type: ignore[attr-defined]
        warnings.filterwarnings("ignore", "Using `torch.compile", UserWarning)  # of the hooks that watch every module
        yield


@contextlib.contextmanager
def backend_as_captured(flags: Mapping[str, bool | str]) -> Iterator[None]:
    """cuDNN's and the deterministic-algorithms switches as the capture found them."""
    before = torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic
    deterministic = torch.are_deterministic_algorithms_enabled()
    wanted = bool(flags.get("deterministic_algorithms", deterministic))
    try:
        torch.backends.cudnn.benchmark = bool(flags.get("cudnn_benchmark", before[0]))
        torch.backends.cudnn.deterministic = bool(flags.get("cudnn_deterministic", before[1]))
        if wanted != deterministic:  # setting it loads torch's compiler, seconds more than torch itself
            torch.use_deterministic_algorithms(wanted, warn_only=True)
        yield
    finally:
        torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = before
        if wanted != deterministic:
            torch.use_deterministic_algorithms(deterministic)
