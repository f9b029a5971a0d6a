"""Write gradtrend's own capture format: one file that `torch.load(weights_only=True)` reads."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gradtrend.model.capture import CAPTURE_FORMAT, CAPTURE_VERSION, OutsideState
from gradtrend.recording.factory import factory_path
from gradtrend.recording.outside import as_payload, snapshot_outside
from gradtrend.recording.values import kept_microbatches, number

_AUTOCAST = ("float16", "bfloat16")


def save_capture(
    path: str | Path,
    *,
    model: torch.nn.Module,
    factory: str | Callable[..., Any],
    kwargs: Mapping[str, Any] | None = None,
    microbatches: Sequence[Any],
    step: int,
    rng_states: Mapping[str, Any],
    model_state: Mapping[str, Any] | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    autocast: torch.dtype | str | None = None,
    loss_scale: float | None = None,
    loss_divisor: float | None = None,
    loss: float | None = None,
    gradient_norm: float | None = None,
    bad_parameters: Iterable[str] = (),
    baseline_norm: float | None = None,
    baseline_norms: Mapping[str, float] | None = None,
    outside: OutsideState | None = None,
) -> Path:
    """Save one step so that `gradtrend replay` can run it again; the path of the file that was written.

    `factory` makes the model: a function or "module:function", called with `kwargs` (plain JSON values); it gives the
    model, or (model, step) where step(model, microbatch) gives the loss. `model_state` must be the state dict from
    BEFORE the step (clone it: BatchNorm changes its buffers in the forward pass), `rng_states` what
    `snapshot_random_states` gave after the batch was drawn. `loss_divisor` divides each microbatch's loss before
    backward (default: their number). `baseline_norm` and `baseline_norms` (by parameter) are gradient norms of a usual
    step: with them a finite step can be told to be an explosion. `rank` and `world_size` are those of torch's process
    group where they are not given. Which modules are in training mode and which parameters are trained is taken from
    `model`; so is what it keeps outside its state dict, where `outside` does not bring it from before the step.

    Folders are made; a file that is there stays, and the new one is called `NAME-2`. It appears whole or not at all.
    Raises `TypeError` or `ValueError` naming what a capture cannot keep, `OSError` where it cannot be written.
    """
    payload = {
        "format": CAPTURE_FORMAT,
        "format_version": CAPTURE_VERSION,
        "model": {"factory": factory_path(factory), "kwargs": _json(kwargs or {})},
        **_of_the_model(model, model_state),
        "outside": as_payload(outside if outside is not None else snapshot_outside(model, before=False)),
        "microbatches": kept_microbatches(microbatches),
        "rng": _random_states(rng_states),
        "precision": {"autocast": _type_name(autocast), "loss_scale": number(loss_scale, "loss_scale")},
        "loss_divisor": _divisor(len(microbatches) if loss_divisor is None else loss_divisor),
        "step": _integer(step, "step"),
        **_place(rank, world_size),
        "loss": number(loss, "loss"),
        "gradient_norm": number(gradient_norm, "gradient_norm"),
        "bad_parameters": [str(name) for name in bad_parameters],
        "baseline": _baseline(baseline_norm, baseline_norms or {}),
        "versions": {"python": platform.python_version(), "torch": str(torch.__version__)},
    }
    return _written(Path(path), payload)


def _of_the_model(model: torch.nn.Module, state: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "model_state": _state(state if state is not None else model.state_dict()),
        "buffers": [name for name, _ in model.named_buffers()],
        "eval_modules": [name for name, module in model.named_modules() if not module.training],
        "frozen_parameters": [name for name, parameter in model.named_parameters() if not parameter.requires_grad],
        "backend": _backend(model),
    }


def _written(path: Path, payload: Mapping[str, Any]) -> Path:
    """Write the file under a name that is free, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        torch.save(payload, partial)
        for count in range(1, 10_000):
            free = path if count == 1 else _numbered(path, count)
            try:
                os.link(partial, free)  # fails where the name is taken, in one step
            except FileExistsError:
                continue
            except OSError:  # a file system without links: a name that is reserved first
                try:
                    free.open("xb").close()
                except FileExistsError:
                    continue
                os.replace(partial, free)  # noqa: PTH105 (atomic)
            return free
        raise FileExistsError(f"{path} and 9,998 more of its name are there already")
    finally:
        partial.unlink(missing_ok=True)


def _numbered(path: Path, count: int) -> Path:
    stem, dot, suffixes = path.name.partition(".")
    return path.with_name(f"{stem}-{count}{dot}{suffixes}")


def _state(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state dict on the CPU; extra state, of any class, stays what it is."""
    if not any(isinstance(value, torch.Tensor) for value in state.values()):
        raise ValueError("model_state holds no tensor: give model.state_dict() from before the step")
    return {
        name: value.detach().to("cpu", copy=True) if isinstance(value, torch.Tensor) else value
        for name, value in state.items()
    }


def _random_states(states: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(states, Mapping) or not isinstance(states.get("torch"), torch.Tensor):
        raise TypeError("rng_states must be what snapshot_random_states() gave before the step")
    return dict(states)


def check_settings(kwargs: Mapping[str, Any] | None, autocast: Any, loss_scale: Any, loss_divisor: Any) -> None:
    """Raise `TypeError` or `ValueError` where `save_capture` would, before there is a step to lose."""
    _json(kwargs or {})
    _type_name(autocast)
    number(loss_scale, "loss_scale")
    if loss_divisor is not None:
        _divisor(loss_divisor)


def rank_here() -> int:
    """The rank of this process, 0 outside of distributed training."""
    distributed = torch.distributed
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0


def _place(rank: Any, world_size: Any) -> dict[str, int]:
    """The rank and the number of ranks: as given, else as torch's process group has them."""
    initialized = torch.distributed.is_available() and torch.distributed.is_initialized()
    size = torch.distributed.get_world_size() if initialized else 1
    return {
        "rank": _integer(rank_here() if rank is None else rank, "rank"),
        "world_size": _integer(size if world_size is None else world_size, "world_size"),
    }


def _divisor(value: Any) -> float:
    divisor = number(value, "loss_divisor")
    if divisor is None or not 0 < divisor < float("inf"):
        raise ValueError(f"loss_divisor must be above zero, not {value!r}")
    return divisor


def _baseline(norm: Any, norms: Mapping[str, Any]) -> dict[str, Any] | None:
    if norm is None and not norms:
        return None
    return {
        "gradient_norm": number(norm, "baseline_norm"),
        "parameters": {str(name): number(value, f"baseline_norms[{name!r}]") for name, value in norms.items()},
    }


def _json(keywords: Mapping[str, Any]) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, np.generic | np.ndarray | torch.Tensor):
            return value.tolist()
        if isinstance(value, Path):
            return str(value)
        raise TypeError(f"kwargs holds a {type(value).__name__}: a factory is called with plain JSON values")

    return json.dumps(dict(keywords), default=plain)


def _integer(value: Any, where: str) -> int:
    as_number = number(value, where)
    if as_number is None or as_number != int(as_number):
        raise TypeError(f"{where} must be an integer, not {value!r}")
    return int(value)


def _type_name(dtype: torch.dtype | str | None) -> str | None:
    if dtype is None:
        return None
    name = str(dtype).removeprefix("torch.")
    if name not in _AUTOCAST:
        raise ValueError(f"autocast must be None, torch.float16 or torch.bfloat16, not {dtype!r}")
    return name


def _backend(model: torch.nn.Module) -> dict[str, bool | str]:
    parameter = next(model.parameters(), None)
    return {
        "device": "cpu" if parameter is None else str(parameter.device),
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "tf32": _uses_tf32(),
    }


def _uses_tf32() -> bool:
    try:
        return bool(torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32)
    except RuntimeError:  # torch's newer switches are in use, which forbid reading these
        return torch.get_float32_matmul_precision() != "highest"
