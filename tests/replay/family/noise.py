"""Randomness, and state that no state dict holds."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.replay.family.case import Case, Made, Truth, confirmed, healthy
from tests.replay.family.forward import batches_of
from tests.replay.family.networks import Layer, classify, draw, labels, network

# In whatever words: that something of the model is neither in the capture nor put back.
OUTSIDE = r"\boutside\b|state dict|own generator|attribute|not captured|restore"
FORWARD = ("forward-operator", "data")  # random numbers are neither an operator's nor a sample's fault alone


def share(x: Tensor) -> Tensor:
    return x / x.sum(1, keepdim=True)


def dropped() -> Made:
    """Two features are dropped at random and then divided by their sum: 0/0 where both are gone."""
    head = nn.Sequential(nn.Dropout(0.5), Layer(share), nn.Linear(2, 3))
    return nn.ModuleDict({"body": nn.Linear(4, 2), "head": head}), positive


def positive(model: Any, batch: Any) -> Tensor:
    return functional.cross_entropy(model["head"](model["body"](batch["x"]).exp()), batch["y"])


def cropped(each: bool) -> Made:
    """A random crop, for the whole batch or for each sample, that python's generator may make empty."""

    class Crop(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if not each:
                return x[:, : int(random.random() * 5)].mean(1, keepdim=True)
            return torch.stack([row[: int(random.random() * 5)].mean() for row in x])[:, None]

    return nn.Sequential(Crop(), nn.Linear(1, 3)), classify


def masked() -> Made:
    """A masked autoencoder whose error is the mean over what numpy's generator has masked."""

    class Masking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 3))

        def forward(self, x: Tensor) -> Tensor:
            hidden = torch.from_numpy((np.random.rand(*x.shape) < 0.5).astype("float32"))
            errors = (self.net(x * (1 - hidden)) - x).square() * hidden
            return (errors.sum(1) / hidden.sum(1)).mean()

    return Masking(), lambda model, batch: model(batch)


def gumbel() -> Made:
    """Noise of few levels, of which 0 has no logarithm; one number a sample."""

    class Noise(nn.Module):
        def forward(self, h: Tensor) -> Tensor:
            level = torch.randint(0, 8, (len(h), 1)) / 8
            return h - level.log()

    return network("conv", Noise())


def depth() -> Made:
    """Stochastic depth: the branch of the whole batch is kept with a chance, and scaled by whether it is."""

    class Branch(nn.Module):
        def forward(self, h: Tensor) -> Tensor:
            kept = (torch.rand(()) < 0.5).float()
            return h + h.tanh() * kept / kept

    return network("text", Branch())


def exploring() -> Made:
    """A policy's entropy with probabilities that exploration noise has rounded to 0, a random action each sample."""

    class Explore(nn.Module):
        def forward(self, h: Tensor) -> Tensor:
            p = h.softmax(1)
            return (p * (torch.rand(len(h), 1) < 0.8)).log()

    return network("policy", Explore())


class Warming(nn.Module):
    """Counts its calls, and divides by what is left of its warm-up."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self.total, self.calls = total, 0

    def forward(self, h: Tensor) -> Tensor:
        left = self.total - self.calls
        self.calls += 1
        return h / torch.tensor(float(left))


def warming(kind: str, total: int) -> Made:
    return network(kind, Warming(total))


def warmed(model: Any) -> None:
    model[1].calls = 1000


class Drawing(nn.Module):
    """Draws from a generator of its own."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def forward(self, h: Tensor) -> Tensor:
        return h / (torch.rand((), generator=self.generator) > 0.5).float()


def drawing(seed: int) -> Made:
    return network("mlp", Drawing(seed))


def drawn(times: int, model: Any) -> None:
    for _ in range(times):
        torch.rand((), generator=model[1].generator)


class Running(nn.Module):
    """A running scale that is in no state dict."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(8), persistent=False)

    def forward(self, h: Tensor) -> Tensor:
        return h / self.scale


def running() -> Made:
    return network("gru", Running())


def scale_gone(model: Any) -> None:
    model.gate.scale.zero_()


class Positions(nn.Module):
    """A table that its constructor makes, in no state dict; and a logarithm of 0."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(8.0), persistent=False)

    def forward(self, h: Tensor) -> Tensor:
        return h + self.table.log()


def positioned() -> Made:
    return network("text", Positions())


class Centred(nn.Module):
    """DINO's centre, kept as a plain tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.centre = torch.zeros(8)

    def forward(self, h: Tensor) -> Tensor:
        return h - self.centre


def centred() -> Made:
    return network("siamese", Centred())


def centre_gone(model: Any) -> None:
    model[1].centre = torch.full((8,), float("nan"))


class Averaged(nn.Module):
    """A teacher that follows its student in the forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.student = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
        self.teacher = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            for slow, fast in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
                slow.lerp_(fast, 0.1)
            target = self.teacher(x)
        return (self.student(x) - target).square().mean()


def averaged() -> Made:
    return Averaged(), lambda model, batch: model(batch["x"])


class Count:
    """A number of the program, of which no model knows."""

    value = 0


class Alternating(nn.Module):
    """Fails at every other call, by a number of the program."""

    def forward(self, h: Tensor) -> Tensor:
        Count.value += 1
        return h / torch.tensor(float(Count.value % 2))


class Wandering(nn.Module):
    """Gives another finite result at every call."""

    def forward(self, h: Tensor) -> Tensor:
        Count.value += 1
        return h * (1 + Count.value % 7)


def counting(kind: str, wanders: bool) -> Made:
    return network(kind, Wandering() if wanders else Alternating())


def counted(model: nn.Module) -> None:
    Count.value = 1


def batch_of_five() -> list[Any]:
    return [{"x": draw(5, 4), "y": labels(5), "path": [f"p{n}.png" for n in range(5)]}]


def made(
    name: str, factory: Callable[..., Any], batches: Callable[[], list[Any]], truth: Truth, seed: int = 11, **more: Any
) -> Case:
    return Case(
        name, "hidden-state" if name.startswith("hidden-") else "random", factory, batches, truth, seed=seed, **more
    )


# What a capture can keep of it is put back, and the step then fails as it did.
KEPT = confirmed("forward-operator", ("1", "gate"), "div", samples=(), says=(OUTSIDE,))
CASES = (
    made("dropout-one-sample", dropped, batch_of_five,
         confirmed(FORWARD, "head.1", "div", samples=((0, 3),), says=(r"p3\.png",)), 5),
    made("dropout-two-samples", dropped, batch_of_five,
         confirmed(FORWARD, "head.1", "div", samples=((0, 1), (0, 4))), 169),
    made("dropout-lucky", dropped, batch_of_five, healthy(), 1),
    made("python-crop-all", cropped, partial(batches_of, "mlp"), confirmed(FORWARD, "0", "mean", samples=()), 1,
         kwargs={"each": False}),
    made("python-crop-one", cropped, batch_of_five,
         confirmed(FORWARD, "0", "mean", samples=((0, 2),), says=(r"p2\.png",)), 30, kwargs={"each": True}),
    made("python-crop-lucky", cropped, batch_of_five, healthy(), 0, kwargs={"each": True}),
    made("numpy-mask-one", masked, lambda: [draw(6, 3)], confirmed(FORWARD, "", "div", samples=((0, 4),)), 6),
    made("numpy-mask-second-batch", masked, lambda: [draw(4, 3), draw(4, 3, seed=5)],
         confirmed(FORWARD, "", "div", samples=((1, 2),), microbatches=(1,)), 5),
    made("gumbel-one", gumbel, partial(batches_of, "conv"), confirmed(FORWARD, "squeeze", "log", samples=((0, 5),)), 4),
    made("stochastic-depth", depth, partial(batches_of, "text"), confirmed(FORWARD, "neck", "div", samples=()), 1),
    made("stochastic-depth-lucky", depth, partial(batches_of, "text"), healthy(), 0),
    made("exploration-one", exploring, partial(batches_of, "policy"),
         confirmed(FORWARD, "body.1", "log", samples=((0, 1),)), 62),
    made("hidden-counter-ended", warming, partial(batches_of, "mlp"), KEPT, prepare=warmed,
         kwargs={"kind": "mlp", "total": 1000}),
    made("hidden-counter-first-call", warming, partial(batches_of, "lstm"),
         confirmed("forward-operator", "gate", "div", samples=()), kwargs={"kind": "lstm", "total": 0}),
    made("hidden-counter-healthy", warming, partial(batches_of, "autoencoder"), healthy(),
         kwargs={"kind": "autoencoder", "total": 3}),
    made("hidden-global-alternating", counting, partial(batches_of, "conv"), Truth(("flaky",), ("none",)),
         prepare=counted, kwargs={"kind": "conv", "wanders": False}),
    made("hidden-global-wandering", counting, partial(batches_of, "experts"), Truth(("flaky",), ("none",)),
         prepare=counted, kwargs={"kind": "experts", "wanders": True}),
    made("hidden-generator-moved", drawing, partial(batches_of, "mlp"),
         Truth(("not-reproduced", "flaky"), ("none",), says=(OUTSIDE,)), prepare=partial(drawn, 1), kwargs={"seed": 1}),
    made("hidden-generator-first", drawing, partial(batches_of, "mlp"),
         Truth(("confirmed", "flaky")), kwargs={"seed": 0}),
    made("hidden-buffer-changed", running, partial(batches_of, "gru"),
         confirmed("forward-operator", "gate", ("div", "log"), samples=(), says=(OUTSIDE, r"gate\.scale")),
         prepare=scale_gone),
    made("hidden-buffer-same", positioned, partial(batches_of, "text"),
         confirmed("forward-operator", "neck", "log", samples=())),
    made("hidden-tensor-attribute", centred, partial(batches_of, "siamese"),
         confirmed("forward-operator", says=(OUTSIDE,)), prepare=centre_gone),
    made("hidden-teacher-average", averaged, partial(batches_of, "mlp"), healthy()),
)  # fmt: skip
