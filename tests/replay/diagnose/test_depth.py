"""Where the gradient vanishes or grows along depth, on networks as people build them and on lines made by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gradtrend
from gradtrend.model.diagnosis import DepthTrend, Flow, LayerFlow, Moments
from gradtrend.replay.diagnose.depth import broken_layers, depth_trend
from tests.replay.diagnose.networks import SOUND, VANISHING, Made, classify, he, mlp, vectors, wide_tanh


def diagnosed(made: Made) -> gradtrend.Diagnosis:
    model, batch, step = made
    return gradtrend.diagnose(model, batch, step=step, precisions=False, overfit_steps=0)


def flows(*decades: float) -> list[LayerFlow]:
    """Layers whose gradients' sizes are 10 to the power of these."""
    seen = Moments(100, 0.0, 1.0, 1.0, 0.0, 1.0)
    return [
        LayerFlow(f"layer{place}", "Linear", 1, 100, 1.0, seen, size=10.0**level) for place, level in enumerate(decades)
    ]


def trend(*decades: float) -> DepthTrend:
    return depth_trend(flows(*decades))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", SOUND)
def test_sound_networks_are_even(name: str, seed: int) -> None:
    torch.manual_seed(seed)
    found = diagnosed(SOUND[name]())
    assert found.trend.flow is Flow.EVEN
    assert not found.trend.broken
    assert not [text for text in found.remarks if "cross-entropy" not in text]  # He's gain on a head: logits too large


@pytest.mark.parametrize("name", VANISHING)
def test_vanishing_networks_are_told(name: str) -> None:
    torch.manual_seed(0)
    found = diagnosed(VANISHING[name]())
    assert found.trend.flow is Flow.VANISHING
    assert found.trend.factor is not None
    assert found.trend.factor < 0.7
    assert any(text.startswith("The gradient is vanishing from ") for text in found.remarks)
    assert {"check-init", "check-normalization"} <= {advice.action for advice in found.next}


def test_weights_too_large_let_it_grow_and_saturate() -> None:
    torch.manual_seed(0)
    found = diagnosed((wide_tanh(), vectors(), classify))
    assert found.trend.flow is Flow.GROWING
    assert found.trend.factor is not None
    assert found.trend.factor > 2
    assert any(text.startswith("Saturated: ") for text in found.remarks)


def test_a_line_is_measured() -> None:
    found = trend(*np.linspace(-9, 0, 10))
    assert (found.flow, found.layers, found.first, found.last) == (Flow.VANISHING, 10, "layer0", "layer9")
    assert found.slope == pytest.approx(1.0)
    assert found.factor == pytest.approx(0.1)


def test_the_layer_from_which_it_vanishes_is_named() -> None:
    found = trend(*np.linspace(-8, 0, 9), *[0.0] * 8)
    assert (found.flow, found.first, found.last, found.layers) == (Flow.VANISHING, "layer0", "layer8", 9)
    found = trend(*[-6.0] * 8, -4.0, -2.0, *[0.0] * 8)
    assert (found.flow, found.last) == (Flow.VANISHING, "layer10")


def test_toward_the_input_it_grows_where_the_line_falls() -> None:
    found = trend(*np.linspace(6, 0, 13))
    assert found.flow is Flow.GROWING
    assert found.slope == pytest.approx(-0.5)


def test_a_slow_drift_through_many_layers_is_even() -> None:
    assert trend(*np.linspace(-3, 0, 200)).flow is Flow.EVEN


def test_noise_and_one_wild_layer_do_not_move_it() -> None:
    noise = np.random.default_rng(0).normal(0, 0.4, 30)
    noise[12] = 6.0
    assert trend(*noise).flow is Flow.EVEN


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_few_layers_tell_no_trend(count: int) -> None:
    found = trend(*range(count))
    assert (found.flow, found.layers, found.slope) == (Flow.UNKNOWN, count, None)


def test_thousands_of_layers() -> None:
    found = trend(*np.linspace(-400, 0, 5000) / 2)
    assert found.flow is Flow.VANISHING
    assert found.slope == pytest.approx(0.04, rel=1e-3)


def test_a_layer_that_breaks_the_chain_is_named() -> None:
    assert broken_layers(flows(0, 0, -4.1, 0.2, 0)) == (2,)
    assert broken_layers(flows(0, 0, -3.9, 0, 0)) == ()
    assert broken_layers(flows(-9, 0, 0, -9)) == ()  # at either end there is but one neighbour
    assert broken_layers(flows(-8, -4, 0)) == ()


def test_a_broken_layer_of_a_network() -> None:
    torch.manual_seed(0)

    class Gated(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1e-7 * super().forward(x)

    model = he(mlp(4))
    model[4] = Gated(64, 64)
    found = diagnosed((model, vectors(), classify))
    assert found.trend.broken == ("4",)
    assert [layer.layer for layer in found.layers if layer.breaks] == ["4"]
    assert any("10,000 times smaller" in text for text in found.remarks)
    assert found.trend.flow is Flow.EVEN
