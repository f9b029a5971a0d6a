"""Finite steps: ordinary ones, large ones of which nobody knows what is usual, and norms too large for their type."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tests.replay.family.case import Case, Made, Truth, confirmed, healthy
from tests.replay.family.forward import batches_of
from tests.replay.family.networks import batch_for, network

AS_RECORDED = r"as recorded|as captured|matches the (captured|recorded)|is the (captured|recorded)"
DIFFERS = r"does not match|differs? from|not the (captured|recorded)"


def plain(kind: str) -> Made:
    return network(kind, nn.GELU())


def steep(kind: str, factor: float) -> Made:
    """The same loss, that many times as large."""
    model, step = network(kind, nn.Tanh())
    return model, lambda model, batch: step(model, batch) * factor


def diverged() -> Made:
    """A regression whose outputs have grown to 1e14, and its squared error."""

    def step(model: nn.Module, batch: Any) -> Tensor:
        return (model(batch["x"]) - 1).square().mean()

    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)), step


def grown(model: Any) -> None:
    model[0].weight.mul_(1e7)
    model[2].weight.mul_(1e7)


def half_steep() -> Made:
    """float16 altogether: each gradient is some thousands, and there are many of them."""

    def step(model: nn.Module, batch: Any) -> Tensor:
        return (model(batch["x"]).float() * 2000).sum()

    return nn.Linear(40, 40), step


def to_half(model: nn.Module) -> None:
    model.half()


def spoil_input(value: float) -> list[Any]:
    batch = batch_for("conv")
    batch["x"][1, 0, 2, 2] = value
    return [batch]


def spoil_head(model: Any) -> None:
    model.head.weight[0, 0] = math.nan


def inspected(name: str, truth: Truth, batches: Any = None, prepare: Any = None) -> Case:
    batches = batches or partial(batches_of, "conv")
    return Case(name, "inspected", plain, batches, truth, {"kind": "conv"}, prepare=prepare, trust=False)


def looked_at(*says: str, silent: tuple[str, ...] = ()) -> Truth:
    return Truth(("inspected",), ("none",), says=(r"nothing was run", *says), silent=silent)


def finite(name: str, kind: str, truth: Any, **more: Any) -> Case:
    return Case(name, "healthy", plain, partial(batches_of, kind), truth, {"kind": kind}, **more)


def overflow(kind: str, factor: float, **more: Any) -> Case:
    # The norm is recorded as training computes it, in float32: inf.
    truth = confirmed(
        "norm-overflow", silent=(r"[1-9]\d* parameters? ha(s|ve) (a )?non-finite", r"resume from an earlier")
    )
    kwargs = {"kind": kind, "factor": factor}
    name = "-".join(["norm-overflow", kind, *more])
    return Case(name, "norm-overflow", steep, partial(batches_of, kind), truth, kwargs, **more)


CASES = (
    finite("healthy-mlp", "mlp", healthy(AS_RECORDED)),
    finite("healthy-conv-norm-only", "conv", healthy(AS_RECORDED), record=("norm",)),
    finite("healthy-lstm-loss-only", "lstm", healthy(), record=("loss",)),
    finite("healthy-text-nothing", "text", healthy(), record=()),
    finite("healthy-policy", "policy", healthy(AS_RECORDED)),
    finite("healthy-siamese", "siamese", healthy(AS_RECORDED)),
    finite("healthy-experts-bfloat16", "experts", healthy(AS_RECORDED), autocast=torch.bfloat16),
    finite("healthy-gru-other-norm", "gru", healthy(DIFFERS), norm_factor=3.0),
    finite("healthy-mlp-norm-a-thousandth", "mlp", healthy(DIFFERS), norm_factor=1e-3, record=("norm",)),
    Case("large-norm-mlp", "healthy", steep, partial(batches_of, "mlp"), healthy(AS_RECORDED),
         {"kind": "mlp", "factor": 1e6}),
    Case("large-norm-lstm-norm-only", "healthy", steep, partial(batches_of, "lstm"), healthy(AS_RECORDED),
         {"kind": "lstm", "factor": 1e9}, record=("norm",)),
    Case("large-norm-autoencoder", "healthy", steep, partial(batches_of, "autoencoder"), healthy(AS_RECORDED),
         {"kind": "autoencoder", "factor": 1e12}),
    inspected("inspected-healthy", looked_at(silent=(r"already non-finite", r"named bad"))),
    inspected("inspected-nan-input", looked_at(r"input microbatch 0: x", r"named bad"), partial(spoil_input, math.nan)),
    inspected("inspected-inf-input", looked_at(r"input microbatch 0: x"), partial(spoil_input, math.inf)),
    inspected("inspected-nan-weight", looked_at(r"head\.weight"), prepare=spoil_head),
    overflow("mlp", 1e25),
    overflow("conv", 1e27),
    overflow("gru", 1e26),
    overflow("text", 1e24),
    overflow("policy", 1e25, autocast=torch.bfloat16),
    overflow("autoencoder", 1e30, record=("norm",)),
    Case("norm-overflow-diverged", "norm-overflow", diverged, partial(batches_of, "mlp"), confirmed("norm-overflow"),
         prepare=grown),
    Case("norm-overflow-two-batches", "norm-overflow", steep, lambda: [batch_for("mlp"), batch_for("mlp", 4)],
         confirmed("norm-overflow"), {"kind": "mlp", "factor": 1e26}),
    Case("norm-overflow-float16", "norm-overflow", half_steep,
         lambda: [{"x": torch.linspace(1, 2, 240).view(6, 40).half()}], confirmed("norm-overflow"), prepare=to_half),
)  # fmt: skip
