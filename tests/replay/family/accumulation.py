"""Accumulation over microbatches, and steps that use up their batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.replay.family.case import Case, Made, Truth, confirmed, healthy
from tests.replay.family.data import constants, data, standardise
from tests.replay.family.networks import batch_for, classify, network
from tests.replay.family.usual import AS_RECORDED


def accumulating(kind: str) -> Made:
    return network(kind, nn.BatchNorm1d(8))


def per_row_written() -> Made:
    """Normalises its batch where it lies."""

    def step(model: nn.Module, batch: Any) -> Tensor:
        x = batch["x"]
        x.sub_(x.mean(1, keepdim=True))
        x.div_(x.square().mean(1, keepdim=True).sqrt())
        return functional.cross_entropy(model(x), batch["y"])

    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)), step


def popping() -> Made:
    def step(model: nn.Module, batch: Any) -> Tensor:
        label = batch.pop("y")
        return functional.cross_entropy(model(standardise((1,), batch.pop("x"))), label)

    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)), step


def huge_sum() -> Made:
    """Each microbatch's gradient is below 3.4e38, their sum is not."""
    return nn.Linear(1, 1, bias=False), lambda model, batch: (model(batch) * 2e38).sum()


def stepping(factor: float) -> Made:
    """Divides in the loss by a random number that is 0 for one microbatch."""

    def step(model: nn.Module, batch: Any) -> Tensor:
        return classify(model, batch) / (torch.rand(()) < factor)

    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), step


def several_batches(kind: str, *sizes: int) -> list[Any]:
    return [batch_for(kind, size) for size in sizes]


def many(
    name: str,
    factory: Callable[..., Any],
    batches: Callable[[], list[Any]],
    truth: Truth,
    kwargs: dict[str, Any] | None = None,
    **more: Any,
) -> Case:
    return Case(name, "accumulation", factory, batches, truth, kwargs or {}, **more)


CASES = (
    many("divisor-healthy", accumulating, partial(several_batches, "mlp", 6, 6), healthy(AS_RECORDED),
         kwargs={"kind": "mlp"}, loss_divisor=8.0),
    many("divisor-one-healthy", accumulating, partial(several_batches, "gru", 6, 4, 6), healthy(AS_RECORDED),
         kwargs={"kind": "gru"}, loss_divisor=1.0),
    many("divisor-third-bad", per_row_written, partial(constants, [[], [], [2], []]),
         data((2, 2), module="", operator="div", says=(r"2-c\.png",)), loss_divisor=16.0),
    many("writes-to-its-batch", per_row_written, partial(constants, [[4]]), data((0, 4), module="", operator="div")),
    many("pops-its-batch", popping, partial(constants, [[1]]), data((0, 1), module="", operator="div")),
    many("pops-its-batch-and-keeps-none", popping, partial(constants, [[1]]),
         Truth(("cannot-run",), ("none",), says=(r"KeyError|'y'",), silent=(r"--device cpu",)), copies=False),
    many("only-the-sum-overflows", huge_sum, lambda: [torch.ones(1, 1), torch.ones(1, 1)],
         Truth(("confirmed",), samples=(), microbatches=()), loss_divisor=1.0),
    many("random-in-one-microbatch", stepping, partial(several_batches, "mlp", 4, 4, 4),
         confirmed(("forward-operator", "data"), "", "div", samples=(), microbatches=(1,)), kwargs={"factor": 0.75},
         seed=0),
)  # fmt: skip
