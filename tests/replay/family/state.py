"""Steps that depend on the state of training: what is frozen or in eval mode, and values that were bad before."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.replay.family.case import Case, Made, confirmed, healthy
from tests.replay.family.forward import batches_of
from tests.replay.family.networks import ConvNet, Experts, Layer, Text, classify, draw, labels, read


class Distilled(nn.Module):
    """A student that follows a teacher with BatchNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.teacher = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
        self.student = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            target = self.teacher(x).softmax(-1)
        return functional.cross_entropy(self.student(x), target)


def distilled() -> Made:
    return Distilled(), lambda model, batch: model(batch["x"])


def frozen_teacher(model: Any) -> None:
    model.teacher.eval()
    model.teacher.requires_grad_(False)


def teacher_nan(model: Any) -> None:
    frozen_teacher(model)
    model.teacher[1].running_var[2] = math.nan


def teacher_negative(model: Any) -> None:
    """A running variance that a bad merge of checkpoints made negative: finite itself, and its root is NaN."""
    frozen_teacher(model)
    model.teacher[1].running_var[2] = -3.0


class Scaled(nn.Module):
    """Divides by what its BatchNorm gives: 0 for a constant batch in training, not with running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4, affine=False)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm(x)
        return self.head(x / normed.abs().sum(1, keepdim=True))


def scaled() -> Made:
    return Scaled(), classify


def norm_in_eval(model: Any) -> None:
    model.norm.eval()
    model.norm.running_mean.fill_(0.5)


def same_for_all() -> list[Any]:
    return [{"x": torch.ones(6, 4), "y": labels(6)}]


def dropped() -> Made:
    """All is dropped (p = 1) and then divided by; training had the dropout in eval mode."""

    def by_sum(h: Tensor) -> Tensor:
        return h / h.abs().sum(1, keepdim=True)

    layers = (nn.Linear(4, 8), nn.Dropout(1.0), Layer(by_sum), nn.Linear(8, 3))
    return nn.Sequential(*layers), classify


def dropout_off(model: Any) -> None:
    model[1].eval()


def rooted_encoder() -> Made:
    """The encoder ends in a root of 0; nothing behind it is bad when the encoder is frozen."""
    encoder = nn.Sequential(nn.Linear(4, 8), Layer(lambda h: h + (h - h.detach()).square().sqrt()))
    return nn.ModuleDict({"encoder": encoder, "head": nn.Linear(8, 3)}), two_parts


def two_parts(model: Any, batch: Any) -> Tensor:
    return functional.cross_entropy(model["head"](model["encoder"](batch["x"])), batch["y"])


def encoder_frozen(model: Any) -> None:
    model["encoder"].requires_grad_(False)


def weight_frozen(model: Any) -> None:
    model["encoder"][0].weight.requires_grad_(False)


def conv() -> Made:
    return ConvNet(nn.Identity()), classify


def text() -> Made:
    return Text(nn.Identity()), read


def experts() -> Made:
    return Experts(nn.Identity()), classify


def conv_eval_infinite(model: Any) -> None:
    model.stem[1].eval()
    model.stem[1].running_mean[1] = math.inf


def conv_eval_infinite_variance(model: Any) -> None:
    """A channel divided by infinity is 0: nothing is wrong with the step."""
    model.stem[1].eval()
    model.stem[1].running_var[1] = math.inf


def conv_eval_nan_unused(model: Any) -> None:
    model.stem[1].running_var[1] = math.nan


def poison(name: str, model: nn.Module) -> None:
    model.get_parameter(name).view(-1)[1] = math.nan


def row(number: int, model: Any) -> None:
    model.embed.weight[number, 0] = math.nan


def short_words() -> list[Any]:
    """Tokens 0 to 5 of 12, each of them in some text."""
    ids = torch.arange(24).view(4, 6) % 6
    return [(ids, torch.zeros(4, 6, dtype=torch.bool), labels(4))]


def bag() -> Made:
    model = nn.Sequential(nn.EmbeddingBag(10, 4, sparse=True, mode="mean"), nn.Linear(4, 3))
    return model, lambda model, batch: functional.cross_entropy(model(batch["ids"]), batch["y"])


def bag_batch() -> list[Any]:
    return [{"ids": torch.arange(12).view(4, 3) % 5, "y": labels(4)}]


def bag_row(number: int, model: Any) -> None:
    model[0].weight[number] = math.nan


class Masked(nn.Module):
    """An attention mask of -inf that is meant to be there, and a scale that is not."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.full((3, 3), -math.inf).triu(1))
        self.register_buffer("scale", torch.ones(()))
        self.query, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        scores = self.query(x) @ x.transpose(1, 2) * self.scale + self.mask
        return self.head(scores.softmax(-1) @ x).square().mean()


def masked() -> Made:
    return Masked(), lambda model, batch: model(batch)


def infinite_scale(model: Any) -> None:
    model.scale.fill_(math.inf)


def made(name: str, factory: Any, kind: str, truth: Any, prepare: Any = None, batches: Any = None) -> Case:
    group = "bad-state" if name.startswith("bad-") else "state"
    return Case(name, group, factory, batches or partial(batches_of, kind), truth, prepare=prepare)


BAD = "bad-state"
NORM = ("native_batch_norm", "_native_batch_norm_legit_no_training", "batch_norm", "_batch_norm_no_update")
CASES = (
    made("teacher-eval-nan-variance", distilled, "mlp", confirmed(BAD, "teacher.1", samples=(),
         says=(r"teacher\.1\.running_var",)), teacher_nan),
    made("teacher-eval-negative-variance", distilled, "mlp",
         confirmed(("bad-state", "forward-operator"), "teacher.1", NORM), teacher_negative),
    made("teacher-eval-healthy", distilled, "mlp", healthy(), frozen_teacher),
    made("norm-eval-over-constant-batch", scaled, "", healthy(), norm_in_eval, same_for_all),
    made("norm-train-over-constant-batch", scaled, "", confirmed(("forward-operator", "data"), "", "div", samples=()),
         None, same_for_all),
    made("dropout-in-eval", dropped, "mlp", healthy(), dropout_off),
    made("dropout-in-train", dropped, "mlp", confirmed("forward-operator", "2", "div", samples=())),
    made("encoder-frozen", rooted_encoder, "mlp", healthy(), encoder_frozen),
    made("weight-frozen", rooted_encoder, "mlp",
         confirmed("backward-operator", "encoder.1", "sqrt backward", samples=()), weight_frozen),
    made("encoder-not-frozen", rooted_encoder, "mlp",
         confirmed("backward-operator", "encoder.1", "sqrt backward", samples=())),
    made("conv-norm-eval-inf-mean", conv, "conv",
         confirmed(BAD, "stem.1", samples=(), says=(r"stem\.1\.running_mean",)), conv_eval_infinite),
    made("bad-variance-not-read", conv, "conv", healthy(), conv_eval_nan_unused),
    made("bad-variance-inf-in-eval", conv, "conv", healthy(), conv_eval_infinite_variance),
    made("bad-conv-weight", conv, "conv", confirmed(BAD, "stem.0", samples=(), says=(r"stem\.0\.weight",)),
         partial(poison, "stem.0.weight")),
    made("bad-attention-weight", text, "text", confirmed(BAD, samples=(), says=(r"block\.self_attn\.in_proj_weight",)),
         partial(poison, "block.self_attn.in_proj_weight")),
    made("bad-expert-bias", experts, "experts",
         confirmed(BAD, "experts.b.0", samples=(), says=(r"experts\.b\.0\.bias",)),
         partial(poison, "experts.b.0.bias")),
    made("bad-embedding-row-used", text, "", confirmed(BAD, "embed", "embedding", says=(r"embed\.weight",)),
         partial(row, 4), short_words),
    made("bad-embedding-row-unused", text, "", healthy(), partial(row, 9), short_words),
    made("bad-sparse-row-used", bag, "", confirmed(BAD, "0", ("_embedding_bag", "embedding_bag")),
         partial(bag_row, 2), bag_batch),
    made("bad-sparse-row-unused", bag, "", healthy(), partial(bag_row, 8), bag_batch),
    made("bad-buffer-scale", masked, "", confirmed(BAD, "", "mul", samples=(), says=(r"buffer scale",)),
         infinite_scale, lambda: [draw(4, 3, 4)]),
    made("bad-mask-is-none", masked, "", healthy(), None, lambda: [draw(4, 3, 4)]),
)  # fmt: skip
