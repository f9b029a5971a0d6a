"""A cross-entropy at the start beside ln(classes), known from its call."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import gradtrend
from gradtrend.model.diagnosis import LossStart, Start
from tests.replay.diagnose.networks import Language, classify, mlp, predict, tokens, vectors


def start_of(model: nn.Module, batch: Any, step: Any, **options: Any) -> LossStart | None:
    return gradtrend.diagnose(model, batch, step=step, precisions=False, overfit_steps=0, **options).start


@pytest.mark.parametrize(
    ("step", "function"),
    [
        (classify, "cross_entropy"),
        (lambda m, b: nn.CrossEntropyLoss(label_smoothing=0.1)(m(b[0]), b[1]), "cross_entropy"),
        (lambda m, b: functional.nll_loss(m(b[0]).log_softmax(-1), b[1]), "nll_loss"),
        (lambda m, b: 0.1 * functional.cross_entropy(m(b[0]), b[1], reduction="sum"), "cross_entropy"),
        (lambda m, b: functional.cross_entropy(m(b[0]), b[1], reduction="none").sum(), "cross_entropy"),
        (lambda m, b: functional.cross_entropy(m(b[0]), functional.one_hot(b[1], 10).float(), reduction="sum"),
         "cross_entropy"),
        (lambda m, b: classify(m, b) + 30 * m(b[0]).square().mean(), "cross_entropy"),
    ],
)  # fmt: skip
def test_the_mean_of_the_call_is_compared_whatever_becomes_of_it(step: Any, function: str) -> None:
    torch.manual_seed(0)
    found = start_of(mlp(1), vectors(), step)
    assert found is not None
    assert (found.function, found.classes, found.state) == (function, 10, Start.AS_GUESSING)
    assert found.loss == pytest.approx(math.log(10), abs=0.1)


def test_ignored_targets_do_not_count() -> None:
    inputs, targets = vectors()
    targets[10:] = -100
    found = start_of(mlp(1), (inputs, targets), lambda m, b: functional.cross_entropy(m(b[0]), b[1], reduction="sum"))
    assert found is not None
    assert found.loss == pytest.approx(math.log(10), abs=0.3)


def test_all_targets_ignored_is_told() -> None:
    inputs, targets = vectors()
    batch = inputs, torch.full_like(targets, -100)
    found = gradtrend.diagnose(mlp(1), batch, step=classify, precisions=False, overfit_steps=2)
    assert found.start is not None
    assert found.start.state is Start.ALL_IGNORED
    assert "All targets of cross_entropy are ignored: nothing can be learned from this batch." in found.remarks
    assert "check-labels" in {advice.action for advice in found.next}


@pytest.mark.parametrize("function", [functional.binary_cross_entropy_with_logits, None])
def test_binary(function: Any) -> None:
    def step(model: nn.Module, batch: Any) -> Tensor:
        targets = (batch[1] > 4).float()
        logits = model(batch[0])[:, 0]
        return function(logits, targets) if function else functional.binary_cross_entropy(logits.sigmoid(), targets)

    found = start_of(mlp(1), vectors(), step)
    assert found is not None
    assert (found.classes, found.state) == (2, Start.AS_GUESSING)
    assert found.expected == pytest.approx(math.log(2))


def test_far_above() -> None:
    found = gradtrend.diagnose(Language(2, tied=True), tokens(), step=predict, precisions=False, overfit_steps=0)
    assert found.start is not None
    assert (found.start.state, found.start.classes) == (Start.FAR_ABOVE, 100)
    assert any("far above the 4.61 of guessing among 100 classes" in text for text in found.remarks)
    assert [advice.action for advice in found.next] == ["check-init"]


def test_a_model_that_has_learned_lies_below_and_that_is_no_fault() -> None:
    model, batch = mlp(1), vectors(8)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(60):
        optimizer.zero_grad()
        classify(model, batch).backward()
        optimizer.step()
    found = gradtrend.diagnose(model, batch, step=classify, precisions=False)
    assert found.start is not None
    assert found.start.state is Start.BELOW
    assert not found.remarks


def test_exactly_guessing_without_a_gradient_is_a_dead_head() -> None:
    model = mlp(1)
    model[1] = nn.Threshold(1e9, 0.0)  # nothing passes
    model[2] = nn.Linear(64, 10, bias=False)
    found = gradtrend.diagnose(model, vectors(), step=classify, precisions=False, overfit_steps=5)
    assert found.start is not None
    assert found.start.state is Start.DEAD_HEAD
    assert "The cross-entropy is exactly ln(10) and no gradient comes of it: the head is dead." in found.remarks
    assert "Every gradient is exactly zero: no step changes the model." in found.remarks
    assert any(text.startswith("The batch cannot be learned: ") for text in found.remarks)


def test_other_losses_are_not_compared() -> None:
    step = lambda m, b: functional.mse_loss(m(b[0]), b[0][:, :10])  # noqa: E731
    assert start_of(mlp(1), vectors(), step) is None


def test_the_number_of_classes_may_be_given() -> None:
    def by_hand(model: nn.Module, batch: Any) -> Tensor:
        return -model(batch[0]).log_softmax(-1).gather(1, batch[1][:, None]).mean()

    assert start_of(mlp(1), vectors(), by_hand) is None
    found = start_of(mlp(1), vectors(), by_hand, classes=10)
    assert found is not None
    assert (found.function, found.state) == (None, Start.AS_GUESSING)
    found = start_of(mlp(1), vectors(), classify, classes=1000)
    assert found is not None
    assert (found.classes, found.state) == (1000, Start.BELOW)
