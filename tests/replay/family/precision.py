"""Steps that leave the range, or the digits, of the type that computes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.replay.family.case import Case, Made, confirmed, healthy
from tests.replay.family.forward import NO_BF16, batches_of
from tests.replay.family.networks import Layer, Text, batch_for, classify, draw, labels, network, read

HALF, BRAIN = torch.float16, torch.bfloat16
BOTH_FAIL = (*NO_BF16, r"(use|switch to|train in) (bf16|bfloat16)")
Function = Callable[[Tensor], Tensor]


def in_half(function: Function) -> Function:
    """What stands in a layer that converts by hand, whatever autocast does."""
    return lambda h: function(h.half()).float() * 1e-9


# name -> function on (batch, 8) that is too much for float16 and for nothing else; the operators that may be named
FAULTS: dict[str, tuple[Function, tuple[str, ...]]] = {
    "mul": (lambda h: (h.abs() + 1) * 1e5, ("mul",)),
    "square": (lambda h: ((h.abs() + 1) * 400).square().clamp(max=60000) * 1e-3, ("pow", "square")),
    "half-exp": (in_half(lambda h: (h.abs() + 12).exp()), ("exp",)),
    "half-sum": (in_half(lambda h: (h.abs() + 20000).sum(1, keepdim=True).expand(-1, 8)), ("sum",)),
    "half-var": (in_half(lambda h: h * 0 + (h * 3000).var(1, keepdim=True)), ("var",)),
    "half-pow": (in_half(lambda h: (h.abs() + 50) ** 4), ("pow",)),
    "half-cumprod": (in_half(lambda h: (h.abs() + 40).cumprod(1)), ("cumprod",)),
}


def make(kind: str, fault: str) -> Made:
    model, step = network(kind, Layer(FAULTS[fault][0]))
    return model, step


def wide(model: Any) -> None:
    """Weights that have grown over a long training."""
    model[0].weight.mul_(1e5)
    model[0].bias.fill_(6e4)


def wide_linear() -> Made:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), classify


def attention(model: Any) -> None:
    model.block.linear1.weight.mul_(3e4)
    model.block.linear2.weight.mul_(3e4)


def reading() -> Made:
    return Text(nn.Identity()), read


def step_of(function: Callable[[Tensor], Tensor], layers: int = 1) -> Made:
    """A classifier of two outputs, and a loss of its logits."""
    body = [part for _ in range(layers - 1) for part in (nn.Linear(4, 4), nn.ReLU())]
    return nn.Sequential(*body, nn.Linear(4, 3)), lambda model, batch: function(model(batch["x"]))


def sure(logit: float) -> Made:
    """1 - p is exactly 0 where p rounds to 1: in three digits from p = 0.998 on, in float32 not before 0.99999997."""
    return step_of(lambda z: -(1 - torch.sigmoid(z * 0 + logit)).log().mean())


def tiny_epsilon(epsilon: float) -> Made:
    """A division that an epsilon guards, except in float16, where 1e-8 is 0."""

    class Unit(nn.Module):
        def forward(self, h: Tensor) -> Tensor:
            off = h.clamp(max=0) * 0
            return off / (off.square().sum(1, keepdim=True) + torch.tensor(epsilon, dtype=h.dtype))

    return network("mlp", Unit())


def log_of_tiny() -> Made:
    """log(p + eps) in the type of the logits, with p = 0."""

    class LogPolicy(nn.Module):
        def forward(self, h: Tensor) -> Tensor:
            return ((h * 0).abs() + torch.tensor(1e-9, dtype=h.dtype)).log()

    return network("experts", LogPolicy())


def beyond_both() -> Made:
    """exp(100): beyond float32 and bfloat16, and of course float16."""
    return network("gru", Layer(lambda h: (h.tanh() + 100).exp()))


def softmax_by_hand() -> Made:
    class Soft(nn.Module):
        def forward(self, h: Tensor) -> Tensor:
            e = (h.tanh() + 95).exp()
            return e / e.sum(1, keepdim=True)

    return network("text", Soft())


def steep(factor: float) -> Made:
    def step(model: nn.Module, batch: Any) -> Tensor:
        return (model(batch["x"]).float() * factor).sum()

    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)), step


def to_half(model: nn.Module) -> None:
    model.half()


def half_true(epsilon: float) -> Made:
    """A model that is float16 altogether, with a norm by hand whose epsilon is not there in float16."""

    class Normed(nn.Module):
        def forward(self, h: Tensor) -> Tensor:
            h = h * 0
            return h / (h.square().mean(1, keepdim=True) + epsilon)

    model = nn.Sequential(nn.Linear(4, 8), Normed(), nn.Linear(8, 3))
    return model, lambda model, batch: functional.cross_entropy(model(batch["x"]).float(), batch["y"])


def half_mlp() -> Made:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    return model, lambda model, batch: functional.cross_entropy(model(batch["x"]).float(), batch["y"])


def grown_half(model: Any) -> None:
    model[0].weight.abs_().mul_(60)
    model[0].bias.fill_(300)
    model[2].weight.abs_().add_(1).mul_(200)
    model.half()


def half_batch() -> list[Any]:
    return [{"x": draw(6, 4).abs().half(), "y": labels(6)}]


def one_case(name: str, factory: Callable[..., Any], truth: Any, autocast: Any, kind: str = "mlp", **more: Any) -> Case:
    return Case(name, "precision", factory, partial(batches_of, kind), truth, autocast=autocast, **more)


def in_layer(kind: str, layer: str, fault: str, autocast: Any = HALF) -> Case:
    truth = confirmed("precision-range", layer, FAULTS[fault][1], samples=())
    return one_case(f"{fault}-{kind}", make, truth, autocast, kind, kwargs={"kind": kind, "fault": fault})


def one_loud_sample() -> list[Any]:
    batch = batch_for("mlp")
    batch["x"][3] *= 1e6
    return [batch]


LINEAR = ("addmm", "linear", "mm")
CASES = (
    in_layer("mlp", "1", "mul"),
    in_layer("experts", "experts.b.1", "mul"),
    in_layer("policy", "body.1", "half-exp", None),
    in_layer("autoencoder", "encoder.2", "half-sum", None),
    in_layer("siamese", "1", "half-var", None),
    in_layer("gru", "gate", "half-pow", None),
    in_layer("mlp", "1", "half-cumprod", HALF),
    one_case("linear-float16", wide_linear, confirmed("precision-range", "0", LINEAR, samples=()), HALF, prepare=wide),
    one_case("linear-bfloat16-same-weights", wide_linear, healthy(), BRAIN, prepare=wide),
    one_case("feed-forward-float16", reading,
             confirmed("precision-range", "block.linear2", LINEAR, samples=(), says=(r"bfloat16",)), HALF, "text",
             prepare=attention),
    one_case("rounding-to-one-bfloat16", sure,
             confirmed("precision-range", "", "log", samples=(), silent=BOTH_FAIL), BRAIN,
             kwargs={"logit": 8.0}),
    one_case("rounding-to-one-float16", sure,
             confirmed("precision-range", "", "log", samples=(), silent=BOTH_FAIL), HALF, kwargs={"logit": 9.0}),
    one_case("rounding-to-one-float32", sure, healthy(), None, kwargs={"logit": 9.0}),
    one_case("epsilon-float16", tiny_epsilon, confirmed("precision-range", "1", "div", samples=()), HALF,
             kwargs={"epsilon": 1e-8}),
    one_case("epsilon-large-enough", tiny_epsilon, healthy(), HALF, kwargs={"epsilon": 1e-2}),
    one_case("epsilon-too-steep-float16", tiny_epsilon, confirmed("precision-range", "1", "div backward", samples=()),
             HALF, kwargs={"epsilon": 1e-6}),
    one_case("epsilon-bfloat16", tiny_epsilon, healthy(), BRAIN, kwargs={"epsilon": 1e-8}),
    one_case("log-epsilon-float16", log_of_tiny, confirmed("precision-range", "experts.b.1", "log", samples=()), HALF,
             "experts"),
    one_case("exp-100-float16", beyond_both,
             confirmed("precision-range", "gate", "exp", samples=(), silent=BOTH_FAIL), HALF, "gru"),
    one_case("exp-100-bfloat16", beyond_both,
             confirmed("precision-range", "gate", "exp", samples=(), silent=BOTH_FAIL), BRAIN, "gru"),
    one_case("exp-100-float32", beyond_both,
             confirmed(("precision-range", "forward-operator"), "gate", "exp", samples=(), silent=BOTH_FAIL), None,
             "gru"),
    one_case("softmax-by-hand", softmax_by_hand,
             confirmed(("precision-range", "forward-operator"), "neck", "exp", samples=(), silent=BOTH_FAIL), BRAIN,
             "text"),
    one_case("loss-scale", steep, confirmed("loss-scale"), HALF, kwargs={"factor": 300.0}, loss_scale=65536.0),
    one_case("loss-scale-small", steep, healthy(), HALF, kwargs={"factor": 300.0}, loss_scale=2.0),
    one_case("gradient-float16", steep, confirmed("precision-range"), HALF, kwargs={"factor": 1e6}),
    Case("float16-true-overflow", "precision", half_mlp, half_batch,
         confirmed("precision-range", "2", LINEAR, samples=()), prepare=grown_half),
    Case("float16-true-epsilon", "precision", half_true, half_batch,
         confirmed("precision-range", "1", "div", samples=()), {"epsilon": 1e-8}, prepare=to_half),
    Case("float16-true-healthy", "precision", half_mlp, half_batch, healthy(), prepare=to_half),
    Case("one-loud-sample-float16", "precision", wide_linear, one_loud_sample,
         confirmed(("precision-range", "data"), "0", "_to_copy", samples=((0, 3),)), autocast=HALF),
)  # fmt: skip
