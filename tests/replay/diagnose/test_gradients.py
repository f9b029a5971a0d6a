"""The numbers of each layer's gradients, and what stands for layers without one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import gradtrend
from gradtrend.model.diagnosis import LayerFlow, Moments
from gradtrend.replay.diagnose.moments import all_moments, merged, sums_of
from tests.replay.diagnose.networks import Language, classify, mlp, predict, tokens, vectors


def moments(*tensors: Tensor) -> Moments:
    (found,) = all_moments([[sums_of(tensor) for tensor in tensors]])
    assert found is not None
    return found


def diagnosed(model: nn.Module, batch: Any, step: Any = None) -> gradtrend.Diagnosis:
    return gradtrend.diagnose(model, batch, step=step, precisions=False, overfit_steps=0)


def layers_of(model: nn.Module, batch: Any, step: Any = None) -> dict[str, LayerFlow]:
    return {layer.layer: layer for layer in diagnosed(model, batch, step).layers}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_moments_of_several_tensors(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    parts = [torch.randn(700_000).to(dtype), torch.zeros(3, 5, dtype=dtype), torch.randn(2, 2).t().to(dtype)]
    whole = np.concatenate([part.double().flatten().numpy() for part in parts])
    seen = moments(*parts)
    assert seen.count == whole.size
    assert seen.mean == pytest.approx(whole.mean(), rel=1e-9)
    assert seen.std == pytest.approx(whole.std(), rel=1e-9)
    assert seen.max_abs == np.abs(whole).max()
    assert seen.zeros == (whole == 0).mean()
    assert seen.norm == pytest.approx(np.linalg.norm(whole), rel=1e-12)
    assert seen.nonfinite == 0


def test_the_moments_of_what_is_finite() -> None:
    seen = moments(torch.tensor([1.0, float("nan"), -3.0, float("inf"), 0.0]))
    assert (seen.count, seen.nonfinite, seen.max_abs, seen.zeros) == (5, 2, 3.0, 0.2)
    assert seen.mean == pytest.approx(-2 / 3)
    assert seen.norm == pytest.approx(10**0.5)


def test_nothing_has_no_moments() -> None:
    assert all_moments([[], []]) == [None, None]
    assert moments(torch.zeros(0)) == Moments(0, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_complex_numbers_by_their_parts() -> None:
    seen = moments(torch.tensor([3 + 4j, 0j]))
    assert (seen.count, seen.max_abs, seen.zeros, seen.norm) == (4, 4.0, 0.5, 5.0)
    assert moments(torch.tensor([3 + 4j]).conj()).mean == -0.5


def test_sums_add_up() -> None:
    one, other = torch.tensor([1.0, 2.0]), torch.tensor([0.0, -5.0])
    assert merged(sums_of(one), sums_of(other)).tolist() == sums_of(torch.cat([one, other])).tolist()


def test_the_layers_are_those_of_the_forward_pass_in_its_order() -> None:
    class Backwards(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(4, 1)
            self.first = nn.Linear(4, 4)
            self.unused = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.first(x)).square().mean()

    found = diagnosed(Backwards(), torch.randn(3, 4))
    assert [layer.layer for layer in found.layers] == ["first", "last", "unused"]
    assert [layer.calls for layer in found.layers] == [1, 1, 0]
    assert found.layers[2].missing == "not-reached"
    assert "Not used in this step: unused." in found.notes
    assert not found.remarks


def test_the_numbers_are_those_of_autograd() -> None:
    torch.manual_seed(0)
    model, batch = mlp(2), vectors()
    found = layers_of(model, batch, classify)
    classify(model, batch).backward()
    for name in ("0", "2", "4"):
        part = model.get_submodule(name)
        both = torch.cat([part.weight.grad.flatten(), part.bias.grad])
        weights = torch.cat([part.weight.detach().flatten(), part.bias.detach()])
        layer = found[name]
        assert layer.gradient is not None
        assert layer.gradient.norm == pytest.approx(float(both.norm()), rel=1e-5)
        assert layer.size == pytest.approx(float(both.square().mean().sqrt()), rel=1e-5)
        assert layer.ratio == pytest.approx(float(both.norm() / weights.norm()), rel=1e-5)
        assert layer.parameters == both.numel()


def test_a_shared_module_counts_both_calls_and_is_one_layer() -> None:
    shared = nn.Linear(4, 4)
    found = layers_of(nn.Sequential(shared, nn.ReLU(), shared), torch.randn(3, 4), lambda m, x: m(x).sum())
    assert list(found) == ["0"]
    assert found["0"].calls == 2


def test_tied_weights_are_counted_once_and_said() -> None:
    found = layers_of(Language(1, tied=True), tokens(), predict)
    assert (found["head"].shared, found["head"].parameters, found["head"].gradient) == ("embed", 0, None)
    assert found["embed"].gradient is not None


def test_weights_that_are_used_past_their_module_stand_where_that_is() -> None:
    names = list(layers_of(Language(2), tokens(), predict))
    place = names.index("body.layers.0.self_attn")
    assert names[place + 1] == "body.layers.0.self_attn.out_proj"
    assert names[-1] == "head"


def test_frozen_layers_are_no_fault() -> None:
    model = mlp(2)
    model[0].requires_grad_(False)
    found = diagnosed(model, vectors(), classify)
    assert found.layers[0].missing == "frozen"
    assert not found.remarks


def test_no_gradient_reaches_any_parameter() -> None:
    found = diagnosed(mlp(2).requires_grad_(False), vectors(), classify)
    assert found.remarks == ("No gradient reaches any parameter: all are frozen (requires_grad is False).",)
    assert [advice.action for advice in found.next] == ["check-graph"]
    found = diagnosed(mlp(2), vectors(), lambda model, batch: classify(model, batch).detach())
    assert found.remarks == ("No gradient reaches any parameter.",)


def test_a_detached_part_is_named() -> None:
    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.early, self.late = nn.Linear(4, 4), nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.late(self.early(x).detach()).mean()

    found = diagnosed(Cut(), torch.randn(3, 4))
    assert found.remarks == ("No gradient reaches 1 layer (early), which ran and are to be trained.",)
    assert "between early and the loss" in found.next[0].text


def test_a_model_without_parameters() -> None:
    found = gradtrend.diagnose(nn.ReLU(), torch.randn(3, 4), step=lambda m, x: m(x).mean(), overfit_steps=3)
    assert found.remarks == ("The model has no parameters: there is nothing to train.",)
    assert found.overfit is not None
    assert found.overfit.problem == "no parameter is trained"


def test_complex_parameters() -> None:
    class Complex(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 4, dtype=torch.complex64))

        def forward(self, x: Tensor) -> Tensor:
            return (x.to(torch.complex64) @ self.weight).abs().mean()

    found = gradtrend.diagnose(Complex(), torch.randn(3, 4), overfit_steps=3)
    (layer,) = found.layers
    assert layer.gradient is not None
    assert found.gradient_norm == pytest.approx(layer.gradient.norm)
    assert found.precisions[0].finite


def test_a_head_of_zeros_lets_nothing_through() -> None:
    model = mlp(2)
    nn.init.zeros_(model[-1].weight)
    nn.init.zeros_(model[-1].bias)
    found = diagnosed(model, vectors(), classify)
    assert found.remarks == (
        "The gradient is exactly zero in all layers but 4: nothing passes through it, as its weights are zero (on "
        "purpose? it is then so in the first step only).",
    )


def test_nan_is_told_with_the_first_to_give_it() -> None:
    model = mlp(2)
    with torch.no_grad():
        model[2].weight[0, 0] = float("nan")
    found = diagnosed(model, vectors(), classify)
    assert "The loss is not finite; the first to give NaN or inf is 2 (Linear)." in found.remarks
    assert any(text.startswith("The gradient is not finite in ") for text in found.remarks)
    assert found.start is not None
    assert found.start.state == "non-finite"


def test_checkpointed_parts_are_counted_once() -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = mlp(1)

        def forward(self, x: Tensor) -> Tensor:
            return torch.utils.checkpoint.checkpoint(self.part, x, use_reentrant=False)  # type: ignore[no-any-return]

    import torch.utils.checkpoint

    found = diagnosed(Checkpointed(), vectors(), classify)
    assert {layer.calls for layer in found.layers} == {1}
    assert {output.calls for output in found.outputs} == {1}
