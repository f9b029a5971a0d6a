"""Operators that are finite forward and have an infinite or undefined slope."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.replay.family.case import Case, Made, confirmed, healthy
from tests.replay.family.forward import NO_BF16, batches_of
from tests.replay.family.networks import OPEN_LAYER, Layer, draw, labels, network

Function = Callable[[Tensor], Tensor]


def own_distance(h: Tensor) -> Tensor:
    """Distance of each sample from itself, by hand."""
    return h + (h - h.detach()).square().sum(1, keepdim=True).sqrt()


def norm_by_power(h: Tensor) -> Tensor:
    return h + (h * 0).pow(2).sum(1, keepdim=True).pow(0.5)


def hidden_log(h: Tensor) -> Tensor:
    positive = h * (h > 100)
    return h + torch.where(positive > 0, positive.log(), torch.zeros_like(h))


def hidden_division(h: Tensor) -> Tensor:
    nothing = h * 0
    return h + torch.where(nothing != 0, 1 / nothing, torch.zeros_like(h))


def hidden_exp(h: Tensor) -> Tensor:
    """exp of a large number where another branch is taken: inf forward, 0 times inf backward."""
    large = h.abs() + 1000
    return torch.where(large < 80, large.exp(), h)


def self_angle(h: Tensor) -> Tensor:
    unit = h.sign() * 1.0 + (h - h.detach())
    return h + (unit[:, :1] * unit[:, :1]).clamp(-1, 1).acos()


def own_angle(h: Tensor) -> Tensor:
    """The angle of the zero vector: torch gives it the slope 0."""
    return h + torch.atan2(h - h.detach(), (h - h.detach()) * 2)


def root_of_variance(h: Tensor) -> Tensor:
    """A scale from the variance of features that are all the same."""
    same = h.mean(1, keepdim=True).expand(-1, 4)
    return h * (1 + (same - same[:, :1]).square().mean(1, keepdim=True).sqrt())


class Squeeze(torch.autograd.Function):
    """A straight-through function whose backward divides by its own result."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        rounded = (x * 0).round()
        ctx.save_for_backward(rounded)
        return x + rounded

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (rounded,) = ctx.saved_tensors
        return grad * rounded / rounded


FAULTS: dict[str, tuple[Function, tuple[str, ...]]] = {
    "sqrt": (own_distance, ("sqrt backward",)),
    "pow": (norm_by_power, ("pow backward",)),
    "where-log": (hidden_log, ("log backward",)),
    "where-div": (hidden_division, ("reciprocal", "div backward", "reciprocal backward")),
    "where-exp": (hidden_exp, ("exp", "exp backward")),
    "acos": (self_angle, ("acos backward",)),
    "atan2": (own_angle, ("atan2 backward",)),
    "std-by-hand": (root_of_variance, ("sqrt backward",)),
    "custom": (Squeeze.apply, ("div", "Squeeze backward", "div backward", "SqueezeBackward")),
}


def make(kind: str, fault: str) -> Made:
    return network(kind, Layer(FAULTS[fault][0]))


def case(kind: str, fault: str) -> Case:
    truth = confirmed("backward-operator", OPEN_LAYER[kind], FAULTS[fault][1], samples=(), silent=NO_BF16)
    batches = partial(batches_of, kind)
    return Case(f"backward-{fault}-{kind}", "backward", make, batches, truth, {"kind": kind, "fault": fault})


def penalised(by_hand: bool) -> Made:
    """A GAN's critic with a gradient penalty; it is flat where its ReLUs are all off, and the norm of 0 is rooted."""
    critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def step(model: nn.Module, batch: Any) -> Tensor:
        x = batch["x"].clone().requires_grad_()
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        size = slope.square().sum(1).sqrt() if by_hand else slope.norm(dim=1)
        return model(batch["x"]).mean() + (size - 1).square().mean()

    return critic, step


def dead(model: Any) -> None:
    model[0].bias.fill_(-100)


def cosine() -> Made:
    """Cosine similarity of two views by hand, with a clamp that comes too late: the root is taken first."""

    class Head(nn.Module):
        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            sizes = a.square().sum(1).sqrt().clamp(min=1e-6) * b.square().sum(1).sqrt().clamp(min=1e-6)
            return (a * b).sum(1) / sizes

    class Twins(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(4, 8, bias=False), nn.Tanh())
            self.similarity = Head()

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            return 1 - self.similarity(self.encoder(a), self.encoder(b)).mean()

    return Twins(), lambda model, batch: model(*batch["views"])


def blank_view() -> list[Any]:
    views = [draw(6, 4), draw(6, 4, seed=1)]
    views[1][4] = 0
    return [{"views": views, "image_path": [f"pair{i}.png" for i in range(6)]}]


def whitening() -> Made:
    """Eigenvectors of a covariance with equal eigenvalues have no slope."""

    class White(nn.Module):
        def forward(self, h: Tensor) -> Tensor:
            values, vectors = torch.linalg.eigh(torch.eye(8) + (h * 0).T @ h)
            return h @ vectors / values.sqrt()

    return network("mlp", White())


def distances() -> Made:
    """All pairwise distances of embeddings by cdist, the diagonal being 0: torch gives that slope 0."""
    return nn.Linear(4, 8), lambda model, batch: torch.cdist(model(batch["x"]), model(batch["x"])).mean()


def spread() -> Made:
    """std of equal features: torch masks the slope."""
    return nn.Linear(
        4, 1
    ), lambda model, batch: model(batch["x"]).expand(-1, 3).std(1).mean() + model(batch["x"]).mean()


def triplet() -> Made:
    """Euclidean distances by hand over the whole matrix, whose diagonal is exactly 0."""

    class Pairs(nn.Module):
        def forward(self, z: Tensor) -> Tensor:
            return (z[:, None] - z[None]).square().sum(-1).sqrt()

    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), Pairs())
    return net, lambda model, batch: functional.relu(1 - model(batch["x"])).mean()


CASES = (
    *(
        case(kind, fault)
        for kind, fault in [
            ("mlp", "sqrt"), ("lstm", "sqrt"), ("conv", "pow"), ("text", "where-log"), ("policy", "where-log"),
            ("experts", "where-div"), ("gru", "where-exp"), ("siamese", "acos"),
            ("text", "std-by-hand"), ("conv", "custom"),
        ]
    ),
    Case("gradient-penalty-by-hand", "backward", penalised, partial(batches_of, "mlp"),
         confirmed("backward-operator", "", "sqrt backward", samples=()), {"by_hand": True}, prepare=dead),
    Case("gradient-penalty-norm", "backward", penalised, partial(batches_of, "mlp"), healthy(), {"by_hand": False},
         prepare=dead),
    Case("cosine-by-hand-blank-view", "backward", cosine, blank_view,
         confirmed(("backward-operator", "data"), "similarity", "sqrt backward", samples=((0, 4),),
                   says=(r"pair4\.png",))),
    Case("eigh-of-identity", "backward", whitening, lambda: [{"x": draw(6, 4), "y": labels(6)}],
         confirmed("backward-operator", "1", ("_linalg_eigh backward", "linalg_eigh backward"), samples=())),
    Case("atan2-of-zeros", "backward", make, partial(batches_of, "autoencoder"), healthy(),
         {"kind": "autoencoder", "fault": "atan2"}),
    Case("cdist-diagonal", "backward", distances, partial(batches_of, "mlp"), healthy()),
    Case("std-of-equal", "backward", spread, partial(batches_of, "mlp"), healthy()),
    Case("triplet-diagonal-by-hand", "backward", triplet, partial(batches_of, "mlp"),
         confirmed("backward-operator", "2", "sqrt backward", samples=())),
)  # fmt: skip
