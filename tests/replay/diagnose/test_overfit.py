"""Whether the batch can be learned by heart, tried on a copy."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradtrend
from gradtrend.model.diagnosis import Fit, Overfit
from tests.replay.diagnose.networks import classify, he, mlp, vectors


def tried(model: nn.Module, batch: Any, step: Any, steps: int = 50) -> Overfit:
    torch.manual_seed(0)
    found = gradtrend.diagnose(model, batch, step=step, precisions=False, overfit_steps=steps).overfit
    assert found is not None
    return found


def test_a_sound_network_learns_its_batch() -> None:
    found = tried(he(mlp(3)), vectors(16), classify)
    assert (found.state, found.steps, found.rate, found.problem) == (Fit.LEARNED, 50, 0.001, None)
    assert found.first is not None
    assert found.last is not None
    assert found.last < 0.1 * found.first


def test_it_is_adam_on_that_batch() -> None:
    torch.manual_seed(3)
    model, batch = mlp(1), vectors(8)
    found = tried(model, batch, classify, steps=4)
    optimizer = torch.optim.Adam(model.parameters(), 0.001)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = classify(model, batch)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    assert (found.first, found.last) == (losses[0], losses[-1])


def test_a_loss_that_stands_is_told() -> None:
    found = gradtrend.diagnose(mlp(1), vectors(), step=lambda m, b: 3 + 0 * m(b[0]).sum(), precisions=False)
    assert found.overfit is not None
    assert found.overfit.state is Fit.STANDS
    assert any(text.startswith("The batch cannot be learned: the loss stands (3 to 3)") for text in found.remarks)
    assert {"check-graph", "check-labels", "raise-lr"} <= {advice.action for advice in found.next}


def test_one_that_leaves_the_finite_numbers_ends_it() -> None:
    def step(model: nn.Module, batch: Any) -> Tensor:
        return (model[0].weight - 1e-4).log().sum()

    model = nn.Sequential(nn.Linear(1, 1))
    with torch.no_grad():
        model[0].weight.fill_(0.003)
    found = gradtrend.diagnose(model, torch.ones(1, 1), step=step, precisions=False)
    assert found.overfit is not None
    assert found.overfit.state is Fit.NONFINITE
    assert found.overfit.steps < 5
    assert any(text.startswith("The loss is not finite after ") for text in found.remarks)


def test_negative_losses_fall_too() -> None:
    assert tried(mlp(1), vectors(), lambda m, b: classify(m, b) - 5).state in (Fit.FALLS, Fit.LEARNED)


def test_a_model_that_cannot_be_copied_says_so() -> None:
    model = mlp(1)
    model.lock = threading.Lock()
    found = tried(model, vectors(), classify)
    assert found.state is Fit.NOT_TRIED
    assert (found.problem or "").startswith("the model cannot be copied (TypeError: cannot pickle")


def test_what_a_model_keeps_of_a_run_does_not_hinder_it() -> None:
    class Keeping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(32, 10)

        def forward(self, x: Tensor) -> Tensor:
            self.kept = self.linear(x)
            return self.kept

    assert tried(Keeping(), vectors(), classify).problem is None


def test_a_few_steps_are_not_taken_for_a_loss_that_stands() -> None:
    assert tried(mlp(1), vectors(), classify, steps=2).state is Fit.FALLS


def test_parameters_in_half_precision_are_stepped() -> None:
    inputs, targets = vectors(16)
    found = tried(mlp(1).half(), (inputs.half(), targets), classify)
    assert found.state in (Fit.LEARNED, Fit.FALLS)


def test_a_step_that_uses_another_model_says_so() -> None:
    model = mlp(1)
    found = tried(model, vectors(), lambda given, batch: classify(model, batch))
    assert found.state is Fit.NOT_TRIED
    assert found.problem == "the loss does not come from the model that the step was given"


def test_it_can_be_switched_off() -> None:
    found = gradtrend.diagnose(mlp(1), vectors(), step=classify, precisions=False, overfit_steps=0)
    assert found.overfit is None


@pytest.mark.parametrize("option", [{"overfit_steps": -1}, {"classes": 1}])
def test_wrong_options(option: dict[str, Any]) -> None:
    with pytest.raises(gradtrend.ConfigError):
        gradtrend.diagnose(mlp(1), vectors(), step=classify, **option)
