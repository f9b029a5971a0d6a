"""What a live step can be, and the errors for what is none."""

from __future__ import annotations

from collections import UserDict
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradtrend
from tests.replay.diagnose.networks import classify, mlp, vectors


class Own(nn.Module):
    """Gives its own loss, in one of the usual forms."""

    def __init__(self, form: Any = lambda loss: loss) -> None:
        super().__init__()
        self.linear, self.form = nn.Linear(4, 1), form

    def forward(self, x: Tensor) -> Any:
        return self.form(self.linear(x).square().mean())


class Training(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 1)

    def training_step(self, batch: Tensor, index: int) -> dict[str, Tensor]:
        return {"loss": self.linear(batch).square().mean() + index}


@pytest.mark.parametrize(
    ("model", "batch"),
    [
        (Own(), torch.ones(3, 4)),
        (Own(), {"x": torch.ones(3, 4)}),
        (Own(), UserDict(x=torch.ones(3, 4))),
        (Own(lambda loss: {"loss": loss, "logits": None}), torch.ones(3, 4)),
        (Own(lambda loss: SimpleNamespace(loss=loss)), torch.ones(3, 4)),
        (Own(lambda loss: loss.reshape(1, 1)), torch.ones(3, 4)),
        (Training(), torch.ones(3, 4)),
    ],
)
def test_the_loss_is_found(model: nn.Module, batch: Any) -> None:
    found = gradtrend.diagnose(model, batch, overfit_steps=2)
    assert found.gradient_norm
    assert found.overfit is not None
    assert found.overfit.first == found.loss
    assert [row.precision for row in found.precisions][:2] == ["float32", "bfloat16"]


@pytest.mark.parametrize(
    ("model", "batch", "step", "error", "message"),
    [
        ("model", torch.ones(2), None, gradtrend.InputError, "model is a str, not a torch.nn.Module"),
        (mlp(1), [], None, gradtrend.InputError, "the batch holds no samples"),
        (mlp(1), {}, None, gradtrend.InputError, "the batch holds no samples"),
        (mlp(1), (torch.zeros(0, 32), torch.zeros(0)), classify, gradtrend.InputError, "the batch holds no samples"),
        (mlp(1), vectors(), 3, gradtrend.InputError, "step is a int, which cannot be called"),
        (mlp(1), vectors()[0], None, gradtrend.ReplayError, "no scalar loss but Tensor"),
        (mlp(1), vectors(), None, gradtrend.ReplayError, "running the step failed: TypeError"),
        (mlp(1), vectors(), lambda m, b: None, gradtrend.ReplayError, "no scalar loss but NoneType"),
        (mlp(1), vectors(), lambda m, b: m(b[0]), gradtrend.ReplayError, "no scalar loss but Tensor"),
        (mlp(1), vectors(), lambda m: 1, gradtrend.ReplayError, "TypeError"),
        (mlp(1), vectors(), lambda m, b: m(b[0]).sum() * 1j, gradtrend.ReplayError, "running the step failed"),
        (mlp(1).to("meta"), vectors(), classify, gradtrend.ReplayError, "running the step failed"),
        (nn.LazyLinear(3), torch.ones(2, 4), lambda m, b: m(b).sum(), gradtrend.ReplayError, "weight has no shape yet"),
    ],
)
def test_what_is_no_step_is_told(model: Any, batch: Any, step: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message.replace("(", r"\(")):
        gradtrend.diagnose(model, batch, step=step)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scripted_model_is_refused() -> None:
    with pytest.raises(gradtrend.ReplayError, match=r"compiled by torch\.jit"):
        gradtrend.diagnose(torch.jit.script(mlp(1)), vectors(), step=classify)


def test_without_a_loss_the_hint_is_to_give_a_step() -> None:
    with pytest.raises(gradtrend.ReplayError) as caught:
        gradtrend.diagnose(mlp(1), vectors()[0])
    assert "Give step=" in (caught.value.hint or "")


def test_a_step_that_goes_backward_itself_is_told_not_to() -> None:
    def step(model: nn.Module, batch: Any) -> Tensor:
        loss = classify(model, batch)
        loss.backward()
        return loss

    with pytest.raises(gradtrend.ReplayError) as caught:
        gradtrend.diagnose(mlp(1), vectors(), step=step)
    assert "leave backward() and the optimizer out" in (caught.value.hint or "")


@pytest.mark.filterwarnings("ignore")
def test_compiled_models_are_looked_at_as_written() -> None:
    found = gradtrend.diagnose(torch.compile(mlp(1)), vectors(), step=classify, overfit_steps=2)
    assert [layer.layer for layer in found.layers] == ["_orig_mod.0", "_orig_mod.2"]
    assert {layer.calls for layer in found.layers} == {1}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_model_on_the_cpu_is_looked_at_on_the_gpu_and_stays_there() -> None:
    model, batch = mlp(2), vectors()
    places = [parameter.data_ptr() for parameter in model.parameters()]
    found = gradtrend.diagnose(model, batch, step=classify, device="cuda")
    assert found.device.startswith("cuda")
    assert places == [parameter.data_ptr() for parameter in model.parameters()]
    here = gradtrend.diagnose(model, batch, step=classify)
    assert found.loss == pytest.approx(here.loss, rel=1e-4)
    assert found.layers[0].size == pytest.approx(here.layers[0].size, rel=1e-3)


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(gradtrend.ReplayError, match="cannot be used"):
        gradtrend.diagnose(mlp(1), vectors(), step=classify, device="cuda:77")


def test_a_loss_without_a_gradient_is_an_answer() -> None:
    found = gradtrend.diagnose(Own(lambda loss: torch.tensor(3)), torch.ones(3, 4))
    assert found.remarks[0] == "No gradient reaches any parameter."
    assert found.loss == 3


@pytest.mark.parametrize(
    ("dtype", "precision"),
    [(torch.float64, "float64"), (torch.bfloat16, "bfloat16-true"), (torch.float16, "float16-true")],
)
def test_the_types_of_the_parameters_are_the_precision(dtype: torch.dtype, precision: str) -> None:
    model, (inputs, targets) = mlp(1).to(dtype), vectors()
    found = gradtrend.diagnose(model, (inputs.to(dtype), targets), step=classify)
    assert found.precision == precision
    row = next(row for row in found.precisions if row.precision == precision)
    assert (row.loss, row.finite) == (found.loss, True)
    assert model[0].weight.dtype is dtype


def test_what_float16_cannot_hold_is_told() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    with torch.no_grad():
        model[0].weight.fill_(1e5)
    found = gradtrend.diagnose(model, torch.ones(3, 4), step=lambda m, x: m(x).abs().log1p().mean(), overfit_steps=0)
    assert any(text.startswith("In float16 the step is not finite, first in 0.") for text in found.remarks)
    assert "stabler-precision" in {advice.action for advice in found.next}


def test_evaluation_mode_is_kept_and_said() -> None:
    model = mlp(2, norm=True).eval()
    found = gradtrend.diagnose(model, vectors(), step=classify, overfit_steps=0)
    assert found.training is False
    assert any("evaluation mode" in note for note in found.notes)
    assert not model.training
