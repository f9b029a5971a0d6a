"""Write gradtrend's own capture format: one file that `torch.load(weights_only=True)` reads."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from gradtrend.model.capture import CAPTURE_FORMAT, CAPTURE_VERSION
from gradtrend.replay.subject import rng
from gradtrend.replay.subject.tensors import map_tensors


def save_capture(
    path: str | Path,
    *,
    model: torch.nn.Module,
    factory: str | Callable[..., Any],
    kwargs: Mapping[str, Any] | None = None,
    microbatches: Sequence[Any],
    step: int,
    rng_states: Mapping[str, Any],
    model_state: Mapping[str, torch.Tensor] | None = None,
    rank: int = 0,
    world_size: int = 1,
    autocast: torch.dtype | None = None,
    loss_scale: float | None = None,
    loss_divisor: float | None = None,
    loss: float | None = None,
    gradient_norm: float | None = None,
    bad_parameters: Sequence[str] = (),
) -> None:
    """Save one step so that `gradtrend replay` can run it again.

    `factory` makes the model: a function or "module:function", called with `kwargs` (plain JSON values); it gives the
    model, or (model, step) where step(model, microbatch) gives the loss. `model_state` must be the state dict from
    BEFORE the step (clone it: BatchNorm changes its buffers in the forward pass), `rng_states` what
    `snapshot_random_states` gave after the batch was drawn. `loss_divisor` divides each microbatch's loss before
    backward (default: their number). The file is written beside `path` and renamed, so it is never half there.
    """
    state = dict(model_state if model_state is not None else model.state_dict())
    payload = {
        "format": CAPTURE_FORMAT,
        "format_version": CAPTURE_VERSION,
        "model": {"factory": factory_path(factory), "kwargs": json.dumps(dict(kwargs or {}))},
        "model_state": map_tensors(state, _on_cpu),
        "buffers": [name for name, _ in model.named_buffers()],
        "microbatches": [map_tensors(batch, _on_cpu) for batch in microbatches],
        "rng": dict(rng_states),
        "precision": {"autocast": _type_name(autocast), "loss_scale": loss_scale},
        "loss_divisor": float(loss_divisor if loss_divisor is not None else len(microbatches)),
        "step": step,
        "rank": rank,
        "world_size": world_size,
        "loss": loss,
        "gradient_norm": gradient_norm,
        "bad_parameters": list(bad_parameters),
        "versions": {"python": platform.python_version(), "torch": str(torch.__version__)},
        "backend": _backend(model),
    }
    path = Path(path)
    partial = path.with_name(f"{path.name}.tmp")
    try:
        torch.save(payload, partial)
        os.replace(partial, path)  # noqa: PTH105 (atomic)
    finally:
        partial.unlink(missing_ok=True)


def snapshot_random_states(device: torch.device | str = "cpu") -> dict[str, Any]:
    """The states of python's, numpy's, torch's and each GPU's generator; take them after the batch was drawn."""
    states = rng.snapshot(torch.device(device))
    version, internal, gauss = states["python"]
    name, keys, *rest = states["numpy"]
    states["python"] = [version, list(internal), gauss]
    states["numpy"] = [str(name), torch.from_numpy(keys.astype("int64")), *rest]
    return states


def factory_path(factory: str | Callable[..., Any]) -> str:
    """`module:function`. Raises `ValueError` for one that no other process could import."""
    if isinstance(factory, str):
        module, _, name = factory.partition(":")
        if not module or not name:
            raise ValueError(f"factory must be 'module:function', not {factory!r}")
        return factory
    if "<" in factory.__qualname__:
        raise ValueError(f"factory {factory.__qualname__} is local: replay could not import it; move it to a module")
    return f"{_module_of(factory)}:{factory.__qualname__}"


def _module_of(factory: Callable[..., Any]) -> str:
    """A script's functions belong to `__main__`, which in another process is another script: use its file name."""
    if factory.__module__ != "__main__":
        return factory.__module__
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is None and file is None:
        raise ValueError("the factory is defined in an interactive session; move it to a module")
    return str(spec.name) if spec is not None else Path(str(file)).stem


def _on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", copy=True)


def _type_name(dtype: torch.dtype | None) -> str | None:
    return None if dtype is None else str(dtype).removeprefix("torch.")


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
