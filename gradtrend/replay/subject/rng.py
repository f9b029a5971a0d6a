"""Put the random generators back to where the captured step found them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch


def restore(states: Mapping[str, Any], device: torch.device) -> None:
    """Set every generator that the capture has a state for.

    Raises `ValueError`, `TypeError` or `RuntimeError` for a state that this Python, numpy or torch does not accept.
    """
    if "torch" in states:
        torch.set_rng_state(states["torch"].cpu())
    if device.type == "cuda" and states.get("cuda") is not None:
        _restore_cuda(states["cuda"], device)
    if states.get("python") is not None:
        version, internal, gauss = states["python"]
        random.setstate((version, tuple(internal), gauss))
    if states.get("numpy") is not None:
        name, keys, *rest = states["numpy"]
        np.random.set_state((name, np.asarray(keys, dtype=np.uint32), *rest))


def _restore_cuda(state: Any, device: torch.device) -> None:
    """One state (of the model's own device) or one a device; the replay's device gets the one that fits."""
    if isinstance(state, list | tuple):
        index = device.index or 0
        state = state[index] if index < len(state) else state[0]
    torch.cuda.set_rng_state(state.cpu(), device)


def missing(states: Mapping[str, Any], device: torch.device, captured_on: str | None) -> Iterator[str]:
    """Sentences about randomness that the replay cannot repeat."""
    if "torch" not in states:
        yield "The capture holds no random state of torch: dropout and the like draw other numbers."
    if captured_on and torch.device(captured_on.split(":")[0]).type != device.type:
        yield f"Captured on {captured_on}, replayed on {device}: random numbers drawn on the device differ."
    elif device.type == "cuda" and states.get("cuda") is None:
        yield "The capture holds no random state of the GPU: random numbers drawn there differ."
