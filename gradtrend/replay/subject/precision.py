"""The context that computes a step in a precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

AUTOCAST = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float16-scaled": torch.float16}
PARAMETER_TYPES = {"float64": torch.float64, "bfloat16-true": torch.bfloat16, "float16-true": torch.float16}
DEFAULT_LOSS_SCALE = 65536.0  # where torch's GradScaler starts


def computing_type(precision: str) -> torch.dtype:
    """The type in which most of the arithmetic is done."""
    return AUTOCAST.get(precision) or PARAMETER_TYPES.get(precision) or torch.float32


@contextmanager
def entered(precision: str, device: torch.device) -> Iterator[None]:
    """Autocast and TF32 as `precision` says, for the forward pass; both as they were afterwards."""
    autocast = AUTOCAST.get(precision)
    with (
        entered_backend(precision, device),
        torch.autocast(device.type, autocast or torch.bfloat16, enabled=autocast is not None),
    ):
        yield


@contextmanager
def entered_backend(precision: str, device: torch.device) -> Iterator[None]:
    """TF32 as `precision` says, also for the backward pass."""
    if device.type != "cuda" or not precision.startswith("float32"):
        yield
        return
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    try:
        before = matmul.allow_tf32, cudnn.allow_tf32
    except RuntimeError:  # the model's code uses torch's newer switches, which forbid these: it has the last word
        yield
        return
    try:
        matmul.allow_tf32 = cudnn.allow_tf32 = precision == "float32-tf32"
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before
