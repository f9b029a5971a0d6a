"""Models of unusual make."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

from tests.replay.family.case import Case, Made, Truth, confirmed, healthy
from tests.replay.family.forward import NO_BF16, batches_of
from tests.replay.family.networks import Layer, classify, draw, network, tokens
from tests.replay.family.usual import AS_RECORDED


class Logarithm(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x * 0).log()


class Root(nn.Module):
    """The root of 0 for every entry: finite, with an infinite slope."""

    def forward(self, x: Tensor) -> Tensor:
        return x + (x - x.detach()).square().sqrt()


FAULTS: dict[str, Callable[[], nn.Module]] = {"log": Logarithm, "root": Root, "none": nn.Tanh}


class Tied(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.embed, self.act, self.out = nn.Embedding(12, 8), FAULTS[fault](), nn.Linear(8, 12, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.act(self.embed(ids)))


def tied(fault: str) -> Made:
    def step(model: nn.Module, batch: Any) -> Tensor:
        return functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    return Tied(fault), step


def spoil_tied(model: Any) -> None:
    model.embed.weight[3, 0] = math.nan


class Scripted(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.first, self.body, self.head = nn.Linear(4, 8), torch.jit.script(FAULTS[fault]()), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.first(x)))


def scripted(fault: str) -> Made:
    return Scripted(fault), classify


class Checkpointed(nn.Module):
    def __init__(self, fault: str, reentrant: bool) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.block = nn.Sequential(nn.Linear(8, 8), FAULTS[fault]())
        self.head = nn.Linear(8, 3)
        self.reentrant = reentrant

    def forward(self, x: Tensor) -> Tensor:
        return self.head(checkpoint(self.block, self.first(x), use_reentrant=self.reentrant))


def checkpointed(fault: str, reentrant: bool) -> Made:
    return Checkpointed(fault, reentrant), classify


def compiled(fault: str) -> Made:
    model, step = network("mlp", FAULTS[fault]())
    return torch.compile(model, backend="eager"), step  # type: ignore[return-value]


def bare(fault: str) -> Made:
    return network("conv", FAULTS[fault]())


class Wrapped(nn.Module):
    """What data parallelism puts around a model; nn.DataParallel itself would want every GPU of the machine."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any) -> Any:
        return self.module(*args)


class Loose(nn.Module):
    """Parameters that no module's call uses."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ParameterList([nn.Parameter(draw(8, 4)), nn.Parameter(draw(3, 8, seed=1))])


def loose(fault: str) -> Made:
    def step(model: Any, batch: Any) -> Tensor:
        first, second = model.layers
        h = functional.linear(batch["x"], first)
        h = (h * 0).log() if fault == "log" else h + (h - h.detach()).square().sqrt()
        return functional.cross_entropy(functional.linear(h, second), batch["y"])

    return Loose(), step


def several(bad: int) -> Made:
    """Three losses of one body; one of them is the logarithm of 0."""
    model = nn.ModuleDict({"body": nn.Linear(4, 8), "heads": nn.ModuleList([nn.Linear(8, 3) for _ in range(3)])})

    def step(model: Any, batch: Any) -> Tensor:
        h = model["body"](batch["x"]).tanh()
        losses = [functional.cross_entropy(head(h), batch["y"]) for head in model["heads"]]
        losses[bad] = -(model["heads"][bad](h).softmax(1) * (h[:, :3] * 0)).sum(1).log().mean()
        return torch.stack(losses).sum()

    return model, step


class Uncertain(nn.Module):
    """Tasks weighted by a learned log-variance."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.log_variance = nn.Linear(4, 3), nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        out = self.body(x)
        losses = torch.stack([functional.cross_entropy(out, y), out.square().mean()])
        return (losses * (-self.log_variance).exp() + self.log_variance).sum()


def uncertain() -> nn.Module:
    return Uncertain()


def certain(model: Any) -> None:
    model.log_variance.fill_(-200)


class Quantised(nn.Module):
    """Straight-through rounding to a learned scale."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.1))

    def forward(self, h: Tensor) -> Tensor:
        grid = h / self.scale
        return (grid + (grid.round() - grid).detach()) * self.scale


def quantised() -> Made:
    return network("experts", Quantised())


def no_scale(model: Any) -> None:
    model.experts["b"][1].scale.zero_()


def weight_normed() -> Made:
    return nn.Sequential(parametrizations.weight_norm(nn.Linear(4, 8)), nn.ReLU(), nn.Linear(8, 3)), classify


def no_direction(model: Any) -> None:
    model[0].parametrizations.weight.original1.zero_()


def spectral() -> Made:
    return nn.Sequential(parametrizations.spectral_norm(nn.Linear(4, 8)), nn.Tanh(), nn.Linear(8, 3)), classify


def shared() -> Made:
    """One layer called at two places; the second one gives it zeros."""

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.ratio, self.last = (
                nn.Linear(4, 8),
                Layer(lambda h: h / h.abs().sum(1, keepdim=True)),
                nn.Linear(8, 3),
            )

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.ratio(self.ratio(self.first(x)) * 0))

    return Twice(), classify


def made(name: str, factory: Callable[..., Any], kind: str, truth: Truth, fault: str = "", **more: Any) -> Case:
    batches = more.pop("batches", partial(batches_of, kind))
    kwargs = more.pop("kwargs", {"fault": fault} if fault else {})
    return Case(name, "shapes", factory, batches, truth, kwargs, **more)


def log(module: str | tuple[str, ...]) -> Truth:
    return confirmed("forward-operator", module, "log", samples=(), silent=NO_BF16)


def root(module: str | tuple[str, ...]) -> Truth:
    return confirmed("backward-operator", module, "sqrt backward", samples=(), silent=NO_BF16)


EITHER_RANGE = ("precision-range", "forward-operator")
NORMALISING = ("_weight_norm_interface", "_weight_norm", "div")
CASES = (
    made("tied-log", tied, "", log("act"), "log", batches=lambda: [tokens(4)]),
    made("tied-root", tied, "", root("act"), "root", batches=lambda: [tokens(4)]),
    made("tied-nan", tied, "", confirmed("bad-state", says=(r"(embed|out)\.weight",)), "none",
         batches=lambda: [tokens(4)], prepare=spoil_tied),
    made("scripted-log", scripted, "mlp", log("body"), "log"),
    made("scripted-root", scripted, "mlp", root("body"), "root"),
    *(
        made(f"checkpoint-{fault}-{'reentrant' if reentrant else 'new'}", checkpointed, "mlp",
             log("block.1") if fault == "log" else root("block.1"), kwargs={"fault": fault, "reentrant": reentrant})
        for fault in ("log", "root")
        for reentrant in (True, False)
    ),
    made("compiled-log", compiled, "mlp", log(("1", "_orig_mod.1")), "log"),
    made("compiled-root", compiled, "mlp", root(("1", "_orig_mod.1")), "root"),
    made("parallel-log", bare, "conv", log(("squeeze", "module.squeeze")), "log", wrap=Wrapped),
    made("parallel-healthy", bare, "conv", healthy(AS_RECORDED), "none", wrap=Wrapped),
    made("loose-log", loose, "mlp", log(""), "log"),
    made("loose-root", loose, "mlp", root(""), "root"),
    made("several-losses-second", several, "mlp", log(""), kwargs={"bad": 1}),
    made("several-losses-last", several, "mlp", log(""), kwargs={"bad": 2}),
    made("log-variance", uncertain, "mlp", confirmed(EITHER_RANGE, "", "exp", samples=(), silent=NO_BF16),
         prepare=certain),
    made("quantised-scale-zero", quantised, "experts",
         confirmed(("forward-operator", "bad-state"), "experts.b.1", "div", samples=()), prepare=no_scale),
    made("weight-norm-zero", weight_normed, "mlp",
         confirmed(("forward-operator", "bad-state"), ("0", "0.parametrizations.weight", "0.parametrizations.weight.0"),
                   NORMALISING, samples=()), prepare=no_direction),
    made("spectral-norm-healthy", spectral, "mlp", healthy(AS_RECORDED)),
    made("shared-layer", shared, "mlp", confirmed("forward-operator", "ratio", "div", samples=())),
)  # fmt: skip
