"""The states of the random generators that every program has: python's, numpy's, torch's, each GPU's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def present_states(device: torch.device) -> dict[str, Any]:
    """The present states, by generator, as a replay puts them back."""
    states: dict[str, Any] = {
        "torch": torch.get_rng_state(),
        "python": random.getstate(),
        "numpy": np.random.get_state(),
    }
    if device.type == "cuda":
        states["cuda"] = [torch.cuda.get_rng_state(index) for index in range(torch.cuda.device_count())]
    return states


def snapshot_random_states(device: torch.device | str = "cpu") -> dict[str, Any]:
    """The states of python's, numpy's, torch's and each GPU's generator; take them after the batch was drawn."""
    states = present_states(torch.device(device))
    version, internal, gauss = states["python"]
    name, keys, *rest = states["numpy"]
    states["python"] = [version, list(internal), gauss]
    states["numpy"] = [str(name), torch.from_numpy(keys.astype("int64")), *rest]
    return states
