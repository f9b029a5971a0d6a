"""Steps that are bad because of what is in their batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.replay.family.case import Case, Made, Truth, confirmed
from tests.replay.family.networks import Layer, Recurrent, Rollout, batch_for, classify, draw, labels, network

SIX = [f"{letter}.png" for letter in "abcdef"]
EITHER = ("data", "backward-operator")  # one sample's fault that shows in the backward pass: both are true
MODEL_RAISES = Truth(("cannot-run",), ("none",), silent=(r"--device cpu",))


def plain(kind: str) -> Made:
    return network(kind, nn.Identity())


def standardise(dims: tuple[int, ...], x: Tensor) -> Tensor:
    return (x - x.mean(dims, keepdim=True)) / x.std(dims, keepdim=True)


def per_image() -> Made:
    model = network("conv", nn.Identity())[0]
    return nn.ModuleDict({"normalise": Layer(partial(standardise, (1, 2, 3))), "net": model}), in_two


def in_two(model: Any, batch: Any) -> Tensor:
    return functional.cross_entropy(model["net"](model["normalise"](batch["x"])), batch["y"])


def per_sequence() -> Made:
    """Time first, normalised over time by hand."""
    return nn.ModuleDict(
        {"normalise": Layer(partial(standardise, (0, 2))), "net": Recurrent(nn.LSTM, nn.Identity())}
    ), in_two


def per_row() -> Made:
    return nn.Sequential(Layer(partial(standardise, (1,))), nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), classify


def with_value(kind: str, place: tuple[int, ...], value: float, key: Any = "x") -> list[Any]:
    batch = batch_for(kind)
    (batch if key is None else getattr(batch, key) if isinstance(key, str) and hasattr(batch, key) else batch[key])[
        place
    ] = value
    return [batch]


def labelled(label: int) -> list[Any]:
    batch = batch_for("mlp")
    batch["y"][2] = label
    return [batch]


def unknown_token() -> list[Any]:
    batch = batch_for("text")
    batch[0][1, 2] = 12
    return [batch]


def constants(where: list[list[int]], kind: str = "mlp", size: int = 6) -> list[Any]:
    """One batch for each list of samples that are constant."""
    batches = [batch_for(kind, size) | {"file": [f"{n}-{name}" for name in SIX[:size]]} for n in range(len(where))]
    for batch, samples in zip(batches, where, strict=True):
        for sample in samples:
            batch["x"].select(1 if kind == "lstm" else 0, sample).fill_(0.5)
    return batches


def weighted() -> Made:
    """Each sample's loss is a mean over its own weights."""

    def step(model: nn.Module, batch: Any) -> Tensor:
        errors = (model(batch["x"]) - batch["target"]).square()
        return ((errors * batch["weight"]).sum(1) / batch["weight"].sum(1)).mean()

    return nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 4)), step


def weights(value: float, **place: int) -> list[Any]:
    weight = torch.ones(6, 4)
    weight[place["row"]] = value
    return [{"x": draw(6, 4), "target": draw(6, 4, seed=2), "weight": weight, "path": SIX}]


def far_target() -> list[Any]:
    (batch,) = weights(1.0, row=0)
    batch["target"][1] = math.inf
    return [batch]


@dataclass
class Record:
    x: Tensor
    y: Tensor
    path: list[str]


def of_record() -> Made:
    return per_row()[0], lambda model, batch: functional.cross_entropy(model(batch.x), batch.y)


def of_arrays() -> Made:
    def step(model: nn.Module, batch: Any) -> Tensor:
        return functional.cross_entropy(model(torch.from_numpy(batch["x"])), torch.from_numpy(batch["y"]))

    return network("mlp", nn.ReLU())[0], step


def record() -> list[Any]:
    (batch,) = constants([[4]])
    return [Record(batch["x"], batch["y"], batch["file"])]


def arrays() -> list[Any]:
    (batch,) = with_value("mlp", (5, 0), math.nan)
    return [{"x": batch["x"].numpy(), "y": batch["y"].numpy()}]


def normed() -> Made:
    return network("mlp", nn.BatchNorm1d(8))


def made(name: str, factory: Callable[..., Any], batches: Callable[[], list[Any]], truth: Truth, **kwargs: Any) -> Case:
    return Case(name, "data", factory, batches, truth, kwargs)


def data(*samples: tuple[int, int], **more: Any) -> Truth:
    numbers = tuple(sorted({batch for batch, _ in samples}))
    return confirmed("data", samples=tuple(samples), **{"microbatches": numbers, "says": ()} | more)


def many(*bad: int) -> list[Any]:
    x = draw(64, 4)
    x[list(bad)] = 2.0
    return [{"x": x, "y": labels(64), "idx": torch.arange(64) + 5000}]


def one_by_one() -> Made:
    """Batches that nobody put together: a list of samples."""

    def step(model: nn.Module, batch: Any) -> Tensor:
        return torch.stack([functional.cross_entropy(model(one["x"][None])[0], one["y"]) for one in batch]).mean()

    return per_row()[0], step


def uncollated() -> list[Any]:
    (batch,) = constants([[2]])
    return [[{"x": x, "y": y, "path": name} for x, y, name in zip(batch["x"], batch["y"], batch["file"], strict=True)]]


CASES = (
    made("one-of-64", per_row, partial(many, 41), data((0, 41), module="0", operator="div", says=(r"\b5041\b",))),
    made("twelve-of-64", per_row, partial(many, *range(3, 63, 5)),
         confirmed("data", "0", "div", microbatches=(0,))),
    made("list-of-samples", one_by_one, uncollated, data((0, 2), module="0", operator="div", says=(r"0-c\.png",))),
    made("nan-in-input-gru", plain, partial(with_value, "gru", (2, 3, 1), math.nan),
         data((0, 3), module="rnn", says=(r"microbatch 0: x",)), kind="gru"),
    made("inf-in-input-batchnorm", normed, partial(with_value, "mlp", (4, 1), math.inf), data((0, 4))),
    made("nan-in-input-conv", plain, partial(with_value, "conv", (1, 0, 2, 2), math.nan),
         data((0, 1), module="stem.0"), kind="conv"),
    made("nan-in-bare-tensor", plain, partial(with_value, "autoencoder", (2, 0), math.nan, None),
         data((0, 2), module="encoder.0"), kind="autoencoder"),
    made("nan-in-reward", plain, partial(with_value, "policy", (3,), math.nan, "reward"), data((0, 3), module=""),
         kind="policy"),
    made("inf-in-target", weighted, far_target,
         data((0, 1), module="", operator="sub", says=(r"target", r"b\.png"))),
    made("nan-in-weights", weighted, partial(weights, math.nan, row=2),
         data((0, 2), module="", operator=("mul", "sum"), says=(r"weight", r"c\.png"))),
    made("weights-all-zero", weighted, partial(weights, 0.0, row=5),
         data((0, 5), module="", operator="div", says=(r"f\.png",))),
    made("label-out-of-range", plain, partial(labelled, 3), MODEL_RAISES, kind="mlp"),
    made("label-negative", plain, partial(labelled, -1), MODEL_RAISES, kind="mlp"),
    made("token-out-of-range", plain, unknown_token, MODEL_RAISES, kind="text"),
    made("constant-image", per_image, partial(constants, [[3]], "conv"),
         data((0, 3), module="normalise", operator="div", says=(r"0-d\.png",))),
    made("constant-images", per_image, partial(constants, [[1, 4]], "conv"),
         data((0, 1), (0, 4), module="normalise", operator="div", says=(r"0-b\.png", r"0-e\.png"))),
    made("constant-sequence-time-first", per_sequence, partial(constants, [[2]], "lstm"),
         data((0, 2), module="normalise", operator="div", says=(r"0-c\.png",))),
    made("constant-sequence-four-of-seven", per_sequence,
         lambda: [{key: batch[key] for key in ("x", "y")} for batch in constants([[1]], "lstm", 4)],
         data((0, 1), module="normalise", operator="div")),
    made("two-microbatches", per_row, partial(constants, [[1], [3]]),
         data((0, 1), (1, 3), module="0", operator="div", says=(r"0-b\.png", r"1-d\.png"))),
    made("second-microbatch", per_row, partial(constants, [[], [5], []]), data((1, 5), module="0", operator="div")),
    made("last-microbatch-two", per_row, partial(constants, [[], [], [0, 4]]),
         data((2, 0), (2, 4), module="0", operator="div")),
    made("dataclass-batch", of_record, record, data((0, 4), module="0", operator="div")),
    made("numpy-batch", of_arrays, arrays, data((0, 5))),
    made("namedtuple-batch", plain, lambda: [Rollout(draw(6, 5).index_fill(0, torch.tensor([1]), math.nan), labels(6),
                                                     draw(6))], data((0, 1), module="body.0"), kind="policy"),
)  # fmt: skip
