"""The failing run again, with one module alone in float32: does that cure it?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gradtrend.model.replay import Swap
from gradtrend.recording.trees import map_tensors
from gradtrend.replay.run.step import run_step
from gradtrend.replay.subject.failure import named
from gradtrend.replay.subject.precision import AUTOCAST
from gradtrend.replay.subject.subject import Subject


def swap(subject: Subject, precision: str, name: str) -> Swap | None:
    """None where there is nothing to swap: the step is in no autocast, or its bad operator is in no single module."""
    if precision not in AUTOCAST or not name:
        return None
    module = subject.model.get_submodule(name)
    original = module.forward
    module.forward = _in_float32(original, subject.device)
    try:
        result = run_step(subject, precision)
    except Exception as error:  # the next module may refuse float32, and the user's code may raise anything
        return Swap(name, cured=None, problem=named(error))
    finally:
        del module.forward  # the class's own comes back
        if module.forward != original:
            module.forward = original
    return Swap(name, cured=result.finite)


def _in_float32(forward: Callable[..., Any], device: torch.device) -> Callable[..., Any]:
    def wide(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast(device.type, enabled=False):
            return forward(*map_tensors(args, _widen), **map_tensors(kwargs, _widen))

    return wide


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
