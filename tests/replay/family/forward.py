"""Operators whose forward pass is non-finite for every sample, in many kinds of networks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.replay.family.case import Case, Made, confirmed
from tests.replay.family.networks import OPEN_LAYER, Layer, batch_for, draw, labels, network

NO_BF16 = (r"train in bfloat16", r"--precision bf16")
Function = Callable[[Tensor], Tensor]
FAULTS: dict[str, tuple[Function, tuple[str, ...]]] = {
    "log": (lambda h: h.clamp(max=0).neg().clamp(max=0).log(), ("log",)),
    "div": (lambda h: h / (h - h.detach()), ("div",)),
    "sqrt": (lambda h: (-h.square() - 1).sqrt(), ("sqrt",)),
    "acos": (lambda h: (h.abs() + 1.1).acos(), ("acos",)),
    "asin": (lambda h: (h.abs() + 1.1).asin(), ("asin",)),
    "pow": (lambda h: (-h.abs() - 1) ** 0.5, ("pow",)),
    "exp": (lambda h: (h.tanh() + 1000).exp(), ("exp",)),
    "reciprocal": (lambda h: (h * 0).reciprocal(), ("reciprocal",)),
    "rsqrt": (lambda h: (h * 0).square().rsqrt(), ("rsqrt",)),
    "log1p": (lambda h: (-h.abs() - 2).log1p(), ("log1p",)),
    "atanh": (lambda h: (h.abs() + 1.5).atanh(), ("atanh",)),
    "lgamma": (lambda h: (h * 0).lgamma(), ("lgamma",)),
    "std": (lambda h: h * h[:, :1].std(dim=1, keepdim=True), ("std", "var")),
    "logit": (lambda h: (h.tanh() * 0 + 1).logit(), ("logit",)),
    "log2": (lambda h: h.clamp(min=3, max=3).sub(3).log2(), ("log2",)),
}


def make(kind: str, fault: str) -> Made:
    return network(kind, Layer(FAULTS[fault][0]))


def case(kind: str, fault: str) -> Case:
    truth = confirmed("forward-operator", OPEN_LAYER[kind], FAULTS[fault][1], samples=(), silent=NO_BF16)
    batches = partial(batches_of, kind)
    return Case(f"forward-{fault}-{kind}", "forward", make, batches, truth, {"kind": kind, "fault": fault})


def batches_of(kind: str) -> list[Any]:
    return [batch_for(kind)]


def ignoring(inside: bool) -> Made:
    """Cross-entropy over no label at all: a mean over nothing."""
    model = nn.ModuleDict({"net": nn.Linear(4, 3), "criterion": nn.CrossEntropyLoss(ignore_index=-100)})

    def step(model: Any, batch: Any) -> Tensor:
        loss = model["criterion"] if inside else functional.cross_entropy
        return loss(model["net"](batch["x"]), batch["y"])

    return model, step


def divergence() -> Made:
    """Kullback-Leibler by hand between two distributions, the second of which has a hard zero."""

    def step(model: nn.Module, batch: Any) -> Tensor:
        p = model(batch["x"]).softmax(-1)
        q = functional.one_hot(batch["y"], 3).float()
        return (p * (p / q).log()).sum(-1).mean()

    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)), step


def focal() -> Made:
    """Binary cross-entropy by hand behind a saturated sigmoid."""

    def step(model: nn.Module, batch: Any) -> Tensor:
        p = torch.sigmoid(model(batch["x"]) * 0 + 40.0)
        return -(1 - p).log().mean()

    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), step


class Gaussian(nn.Module):
    """A VAE that uses its log-variance as the variance."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(6, 4)
        self.decoder = nn.Linear(2, 6)
        self.sample = Layer(lambda h: h[:, :2] + torch.randn(len(h), 2) * (-h[:, 2:].abs() - 0.1).sqrt())

    def forward(self, x: Tensor) -> Tensor:
        return functional.mse_loss(self.decoder(self.sample(self.encoder(x))), x)


def diffusion() -> Made:
    """Noise prediction at the last step, whose signal-to-noise ratio divides by zero."""

    class Denoiser(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("alphas", torch.linspace(1, 0, 5))
            self.net = nn.Sequential(nn.Linear(7, 16), nn.SiLU(), nn.Linear(16, 6))

        def forward(self, x: Tensor, t: Tensor) -> Tensor:
            kept, noise = self.alphas[t][:, None], torch.randn_like(x)
            guess = self.net(torch.cat([kept.sqrt() * x + (1 - kept).sqrt() * noise, t[:, None] / 5], dim=1))
            return ((guess - noise).square().mean(1) / kept.squeeze(1)).mean()

    return Denoiser(), lambda model, batch: model(batch["x"], batch["t"])


def ranks() -> Made:
    """CTC with targets longer than the input: an infinite loss."""

    class Speech(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.out, self.ctc = nn.GRU(4, 8), nn.Linear(8, 5), nn.CTCLoss()

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            logits = self.out(self.rnn(x)[0]).log_softmax(-1)
            sizes = torch.full((x.shape[1],), len(x)), torch.full((len(y),), y.shape[1])
            return self.ctc(logits, y, *sizes)

    return Speech(), lambda model, batch: model(batch["x"], batch["y"])


def ignored() -> list[Any]:
    return [{"x": draw(5, 4), "y": torch.full((5,), -100)}]


ALL = ("data", "forward-operator")
CASES = (
    *(
        case(kind, fault)
        for kind, fault in [
            ("mlp", "log"), ("conv", "log"), ("lstm", "div"), ("text", "div"), ("autoencoder", "sqrt"),
            ("siamese", "sqrt"), ("experts", "acos"), ("policy", "asin"), ("gru", "pow"), ("conv", "exp"),
            ("text", "reciprocal"), ("policy", "rsqrt"), ("mlp", "log1p"), ("experts", "atanh"),
            ("autoencoder", "lgamma"), ("lstm", "std"), ("siamese", "logit"), ("gru", "log2"),
        ]
    ),
    Case("labels-all-ignored-functional", "forward", ignoring, ignored,
         confirmed(ALL, "", ("nll_loss_forward", "nll_loss"), samples=()), {"inside": False}),
    Case("labels-all-ignored-criterion", "forward", ignoring, ignored,
         confirmed(ALL, "criterion", ("nll_loss_forward", "nll_loss"), samples=()), {"inside": True}),
    Case("kl-by-hand", "forward", divergence, partial(batches_of, "mlp"),
         confirmed("forward-operator", "", "div", samples=(), silent=NO_BF16)),
    Case("bce-saturated", "forward", focal, partial(batches_of, "mlp"),
         confirmed("forward-operator", "", "log", samples=(), silent=NO_BF16)),
    Case("vae-negative-variance", "forward", Gaussian, partial(batches_of, "autoencoder"),
         confirmed("forward-operator", "sample", "sqrt", samples=())),
    Case("diffusion-last-step", "forward", diffusion,
         lambda: [{"x": draw(6, 6), "t": torch.tensor([1, 2, 4, 0, 3, 1])}],
         confirmed("data", "", "div", samples=((0, 2),))),
    Case("ctc-too-long", "forward", ranks, lambda: [{"x": draw(3, 4, 4), "y": labels(20, 4).view(4, 5) + 1}],
         confirmed(ALL, "ctc", ("_ctc_loss", "ctc_loss"), samples=())),
)  # fmt: skip
