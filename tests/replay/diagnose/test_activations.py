"""What modules and functions give, by depth: numbers, dead and saturated units."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import gradtrend
from gradtrend.model.diagnosis import LayerOutput
from tests.replay.diagnose.networks import classify, mlp, vectors


def outputs_of(model: nn.Module, batch: Any, step: Any = None) -> dict[str, LayerOutput]:
    found = gradtrend.diagnose(model, batch, step=step, precisions=False, overfit_steps=0)
    return {f"{output.layer} {output.kind}": output for output in found.outputs}


class Using(nn.Module):
    """Any function between two layers."""

    def __init__(self, function: Any, width: int = 4) -> None:
        super().__init__()
        self.first, self.function, self.last = nn.Linear(4, width), function, nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.function(self.first(x))).mean()


def test_the_numbers_of_each_output_in_order() -> None:
    model, (x, y) = mlp(1), vectors()
    found = outputs_of(model, (x, y), classify)
    assert list(found) == ["0 Linear", "1 ReLU", "2 Linear"]
    given = model[1](model[0](x)).detach().double()
    seen = found["1 ReLU"].values
    assert (seen.mean, seen.max_abs) == pytest.approx((float(given.mean()), float(given.abs().max())), rel=1e-6)
    assert seen.std == pytest.approx(float(given.std(correction=0)), rel=1e-6)
    assert seen.zeros == float((given == 0).double().mean())


def test_dead_units_are_counted_and_told() -> None:
    model = mlp(1)
    with torch.no_grad():
        model[0].bias[:60] = -100
    found = gradtrend.diagnose(model, vectors(), step=classify, precisions=False, overfit_steps=0)
    (relu,) = [output for output in found.outputs if output.kind == "ReLU"]
    assert (relu.dead, relu.units, relu.positions) == (60, 64, 64)
    assert found.remarks == ("Dead units: in 1 60 of 64 units give zero for the whole batch.",)
    assert [advice.action for advice in found.next] == ["lower-lr", "check-activation"]


def test_a_dozen_samples_kill_no_unit() -> None:
    model = mlp(1)
    with torch.no_grad():
        model[0].bias[:60] = -100
    found = gradtrend.diagnose(model, vectors(12), step=classify, precisions=False, overfit_steps=0)
    assert not found.remarks


@pytest.mark.parametrize(
    ("function", "kind"),
    [(functional.relu, "relu"), (torch.relu, "relu"), (Tensor.relu, "relu"), (torch.relu_, "relu")],
)
def test_functions_are_seen_as_modules_are(function: Any, kind: str) -> None:
    model = Using(function)
    with torch.no_grad():
        model.first.bias[1] = -100
    found = outputs_of(model, torch.randn(40, 4))[f" {kind}"]
    assert (found.units, found.calls) == (4, 1)
    assert found.dead is not None
    assert found.dead >= 1


@pytest.mark.parametrize(
    ("module", "kind"), [(nn.Tanh(), "Tanh"), (nn.Sigmoid(), "Sigmoid"), (nn.Hardtanh(), "Hardtanh")]
)
def test_saturated_units(module: nn.Module, kind: str) -> None:
    model = Using(module)
    with torch.no_grad():
        model.first.weight.zero_()
        model.first.bias.copy_(torch.tensor([100.0, -100.0, 0.1, 0.1]))
    found = outputs_of(model, torch.randn(8, 4))[f"function {kind}"]
    assert (found.saturated, found.units, found.saturated_share, found.dead) == (2, 4, 0.5, None)


def test_channels_are_the_second_dimension_behind_a_convolution() -> None:
    image = nn.Sequential(nn.Conv2d(3, 5, 1), nn.BatchNorm2d(5), nn.ReLU())
    found = outputs_of(image, torch.randn(2, 3, 7, 7), lambda m, x: m(x).mean())["2 ReLU"]
    assert (found.units, found.positions) == (5, 98)
    words = nn.Sequential(nn.Linear(3, 5), nn.ReLU())
    found = outputs_of(words, torch.randn(2, 7, 3), lambda m, x: m(x).mean())["1 ReLU"]
    assert (found.units, found.positions) == (5, 14)
    series = nn.Sequential(nn.Conv1d(3, 5, 1), nn.ReLU())
    found = outputs_of(series, torch.randn(2, 3, 7), lambda m, x: m(x).mean())["1 ReLU"]
    assert (found.units, found.positions) == (5, 14)


def test_a_unit_is_dead_only_where_it_is_so_in_all_calls() -> None:
    relu = nn.ReLU()

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.relu, self.weight = relu, nn.Parameter(torch.ones(4))

        def forward(self, x: Tensor) -> Tensor:
            signs = torch.tensor([1.0, 1.0, -1.0, -1.0])
            return (self.relu(x * self.weight * signs) + self.relu(x * self.weight)).mean()

    found = outputs_of(Twice(), torch.rand(8, 4) + 1)["relu ReLU"]
    assert (found.calls, found.dead, found.units, found.positions) == (2, 0, 4, 16)
    assert found.values.count == 64
    assert outputs_of(Twice(), -torch.rand(8, 4) - 1)["relu ReLU"].dead == 2


def test_other_shapes_in_another_call_leave_the_units_unsaid() -> None:
    relu = nn.ReLU()
    model = nn.Sequential(nn.Linear(4, 8), relu, nn.Linear(8, 3), relu)
    found = outputs_of(model, torch.randn(5, 4), lambda m, x: m(x).mean())["1 ReLU"]
    assert (found.calls, found.units, found.values.count) == (2, None, 55)


Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    "given",
    [
        lambda x: (x, None, [x]),
        lambda x: {"a": x, "b": {"c": x}},
        lambda x: Pair(x, (x,)),
    ],
)
def test_modules_that_give_several_or_nothing(given: Any) -> None:
    class Giving(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return given(x)

    class Silent(nn.Module):
        def forward(self, x: Tensor) -> None:
            return None

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.giving, self.silent = nn.Linear(4, 4), Giving(), Silent()

        def forward(self, x: Tensor) -> Tensor:
            y = self.linear(x)
            self.giving(y)
            self.silent(y)
            return y.mean()

    found = outputs_of(Model(), torch.randn(3, 4))
    assert found["giving Giving"].values.count == 24
    assert "silent Silent" not in found


def test_integers_in_and_a_recurrent_network() -> None:
    model = nn.Sequential(nn.Embedding(10, 4), nn.LSTM(4, 3, batch_first=True))
    found = outputs_of(model, torch.randint(0, 10, (2, 5)), lambda m, x: m(x)[0].mean())
    assert list(found) == ["0 Embedding", "1 LSTM"]
    assert found["1 LSTM"].values.count == 2 * 5 * 3 + 2 * 2 * 3


def test_a_part_that_fails_and_is_caught_leaves_the_others_their_names() -> None:
    class Failing(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise ValueError

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.failing, self.linear = Failing(), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            try:
                x = self.failing(x)
            except ValueError:
                x = torch.relu(x)
            return self.linear(x).mean()

    assert list(outputs_of(Model(), torch.randn(3, 4))) == [" relu", "linear Linear"]


def test_a_mask_of_infinities_is_no_fault() -> None:
    class Mask(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.full((4, 4), float("-inf")).triu(1)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.mask = nn.Linear(4, 4), Mask()

        def forward(self, x: Tensor) -> Tensor:
            return self.mask(self.linear(x)).softmax(-1).square().mean()

    found = gradtrend.diagnose(Model(), torch.randn(2, 4, 4), precisions=False, overfit_steps=0)
    assert not found.remarks
    assert any(note.startswith("mask (Mask) gives NaN or inf, which does not reach the loss") for note in found.notes)
