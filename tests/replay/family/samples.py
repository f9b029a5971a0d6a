"""Samples that a loss or a layer cannot take: alone, in pairs, or without anything to look at."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.replay.family.case import Made, confirmed
from tests.replay.family.data import EITHER, SIX, data, made
from tests.replay.family.networks import Layer, batch_for, draw, labels, read


class Pairs(nn.Module):
    """Distance of each pair of different samples, by hand."""

    def forward(self, z: Tensor) -> Tensor:
        first, second = torch.triu_indices(len(z), len(z), 1)
        return (z[first] - z[second]).square().sum(1).sqrt()


def repelling(inverse: bool) -> Made:
    """An embedding whose samples repel one another."""
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), Pairs())
    return model, lambda model, batch: (1 / model(batch["x"]) if inverse else model(batch["x"]).neg()).mean()


def twins(first: int, *others: int) -> list[Any]:
    x = draw(8, 4)
    x[list(others)] = x[first].clone()
    return [{"x": x, "file": [f"{n}.png" for n in range(8)]}]


def two_pairs() -> list[Any]:
    (batch,) = twins(0, 3)
    batch["x"][6] = batch["x"][5]
    return [batch]


class Detector(nn.Module):
    """Boxes (left, top, width, height) for each image, whose number differs."""

    def __init__(self, logarithmic: bool) -> None:
        super().__init__()
        self.head = nn.Linear(6, 4)
        self.match = Layer(self.error)
        self.logarithmic = logarithmic

    def error(self, difference: Tensor) -> Tensor:
        return difference.square().mean()

    def forward(self, images: Tensor, boxes: list[Tensor]) -> Tensor:
        guesses = self.head(images)
        wanted = [torch.cat([b[:, :2], b[:, 2:].log()], 1) if self.logarithmic else b for b in boxes]
        return torch.stack([self.match(g - b) for g, b in zip(guesses, wanted, strict=True)]).mean()


def detecting(logarithmic: bool) -> Made:
    return Detector(logarithmic), lambda model, batch: model(batch["image"], batch["boxes"])


def boxes(counts: list[int], flat: tuple[int, ...] = ()) -> list[Any]:
    found = [draw(count, 4, seed=n).abs() + 0.1 for n, count in enumerate(counts)]
    for number in flat:
        found[number][0, 2] = 0
    return [{"image": draw(len(counts), 6), "boxes": found, "image_id": [100 + n for n in range(len(counts))]}]


class Attending(nn.Module):
    """Attention over words by hand, of one head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.score = nn.Embedding(12, 8), nn.Linear(8, 1)
        self.attend = Layer(lambda scores: scores.softmax(1))
        self.out = nn.Linear(8, 3)

    def forward(self, ids: Tensor, pad: Tensor) -> Tensor:
        words = self.embed(ids)
        return self.out(
            (self.attend(self.score(words).squeeze(2).masked_fill(pad, -math.inf))[:, :, None] * words).sum(1)
        )


def attending() -> Made:
    return Attending(), read


def empty_text(*which: int) -> list[Any]:
    ids, pad, label = batch_for("text")
    pad[list(which)] = True
    return [(ids, pad, label)]


class Instances(nn.Module):
    """Smooth maximum over the instances of a bag; what is absent is masked."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(4, 1)

    def forward(self, bags: Tensor, present: Tensor) -> Tensor:
        return self.score(bags).squeeze(-1).masked_fill(~present, -math.inf).logsumexp(1)


def instances() -> Made:
    def step(model: nn.Module, batch: Any) -> Tensor:
        return functional.softplus(-model(batch["bags"], batch["present"])).mean()

    return Instances(), step


def empty_bag() -> list[Any]:
    present = torch.ones(5, 3, dtype=torch.bool)
    present[1] = False
    return [{"bags": draw(5, 3, 4), "present": present, "uid": ["u0", "u1", "u2", "u3", "u4"]}]


def views() -> Made:
    class Normalise(nn.Module):
        def forward(self, z: Tensor) -> Tensor:
            return z / z.square().sum(1, keepdim=True).sqrt()

    model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.ReLU(), nn.Linear(8, 4, bias=False), Normalise())

    def step(model: nn.Module, batch: Any) -> Tensor:
        a, b = (model(view) for view in batch["views"])
        return functional.cross_entropy(a @ b.T / 0.1, torch.arange(len(a)))

    return model, step


def blank(view: int, sample: int) -> list[Any]:
    both = [draw(6, 4), draw(6, 4, seed=1)]
    both[view][sample] = 0
    return [{"views": both, "filename": SIX}]


def speech() -> Made:
    class Speech(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.out, self.ctc = nn.GRU(4, 8), nn.Linear(8, 5), nn.CTCLoss()

        def forward(self, x: Tensor, y: Tensor, length: Tensor) -> Tensor:
            logits = self.out(self.rnn(x)[0]).log_softmax(-1)
            return self.ctc(logits, y, torch.full((x.shape[1],), len(x)), length)

    return Speech(), lambda model, batch: model(batch["x"], batch["y"], batch["length"])


def spoken() -> list[Any]:
    """Seven frames, five sentences; sentence 3 has nine letters."""
    return [{"x": draw(7, 5, 4), "y": labels(45, 4).view(5, 9) + 1, "length": torch.tensor([2, 3, 2, 9, 3])}]


def depths() -> Made:
    """Two tasks: classes, and logarithms of depths."""
    model = nn.ModuleDict({"body": nn.Linear(4, 8), "classes": nn.Linear(8, 3), "depth": nn.Linear(8, 1)})

    def step(model: Any, batch: Any) -> Tensor:
        h = model["body"](batch["x"]).relu()
        depth = (model["depth"](h).squeeze(1) - batch["depth"].log()).square().mean()
        return functional.cross_entropy(model["classes"](h), batch["y"]) + 0.1 * depth

    return model, step


def shallow(*which: int) -> list[Any]:
    depth = torch.arange(1.0, 7.0)
    depth[list(which)] = 0
    return [{**batch_for("mlp"), "depth": depth, "path": SIX}]


CASES = (
    made("twins-backward", repelling, partial(twins, 2, 5),
         confirmed(EITHER, "2", "sqrt backward", samples=((0, 2), (0, 5)), says=(r"2\.png", r"5\.png")), inverse=False),
    made("twins-neighbours-backward", repelling, partial(twins, 6, 7),
         confirmed(EITHER, "2", "sqrt backward", samples=((0, 6), (0, 7))), inverse=False),
    made("twins-forward", repelling, partial(twins, 0, 7),
         data((0, 0), (0, 7), module="", operator=("div", "reciprocal"), says=(r"0\.png", r"7\.png")), inverse=True),
    made("image-without-boxes", detecting, partial(boxes, [2, 3, 0, 1, 2]),
         data((0, 2), module="match", operator="mean", says=(r"102",)), logarithmic=False),
    made("box-without-width", detecting, partial(boxes, [2, 3, 1, 1], (3,)),
         data((0, 3), module="", operator="log", says=(r"103",)), logarithmic=True),
    made("boxes-without-width", detecting, partial(boxes, [2, 3, 1, 1, 4, 2], (0, 4)),
         data((0, 0), (0, 4), module="", operator="log"), logarithmic=True),
    made("text-without-words", attending, partial(empty_text, 4),
         data((0, 4), module="attend", operator=("_softmax", "softmax"))),
    made("texts-without-words", attending, partial(empty_text, 0, 5),
         data((0, 0), (0, 5), module="attend", operator=("_softmax", "softmax"))),
    made("empty-bag", instances, empty_bag,
         data((0, 1), module=(""), operator=("logsumexp", "neg", "softplus"), says=(r"\bu1\b",))),
    made("blank-first-view", views, partial(blank, 0, 2),
         data((0, 2), module="3", operator="div", says=(r"c\.png",))),
    made("blank-second-view", views, partial(blank, 1, 5),
         data((0, 5), module="3", operator="div", says=(r"f\.png",))),
    made("one-sentence-too-long", speech, spoken, data((0, 3), module="ctc", operator=("_ctc_loss", "ctc_loss"))),
    made("one-depth-zero", depths, partial(shallow, 3), data((0, 3), module="", operator="log", says=(r"d\.png",))),
    made("three-depths-zero", depths, partial(shallow, 0, 2, 3),
         data((0, 0), (0, 2), (0, 3), module="", operator="log")),
    made("three-of-a-kind", repelling, partial(twins, 1, 4, 6),
         confirmed(EITHER, "2", "sqrt backward", samples=((0, 1), (0, 4), (0, 6))), inverse=False),
    made("two-pairs", repelling, two_pairs,
         confirmed(EITHER, "2", "sqrt backward", samples=((0, 0), (0, 3), (0, 5), (0, 6))), inverse=False),
)  # fmt: skip
