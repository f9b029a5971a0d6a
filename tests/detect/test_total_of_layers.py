"""A run that logs only per-layer norms is judged by their root sum of squares."""

import json
from pathlib import Path

import numpy as np
import pytest

import gradtrend
from gradtrend.detect.curves.series import Series, total_of
from gradtrend.model.words import Role


def layer(name: str, values: list[float], first: int = 0) -> Series:
    steps = np.arange(first, first + len(values))
    return Series(f"grad_norm/{name}", Role.GRAD_NORM, name, steps, np.array(values))


def test_the_total_is_the_root_of_the_sum_of_squares_on_common_steps() -> None:
    total = total_of([layer("a", [3.0, 3.0, np.nan]), layer("b", [4.0, 0.0, 1.0], first=0)])
    assert total is not None
    np.testing.assert_allclose(total.values, [5.0, 3.0, np.nan])
    assert total.layer is None


def test_one_layer_is_no_model_and_a_rarer_layer_is_left_out() -> None:
    assert total_of([layer("a", [1.0, 2.0])]) is None
    assert total_of([layer("a", [1.0, 2.0]), layer("b", [1.0, 2.0], first=2)]) is None
    total = total_of([layer("a", [3.0] * 9), layer("b", [4.0] * 9), layer("rare", [100.0])])
    assert total is not None
    assert total.values.tolist() == [5.0] * 9


@pytest.mark.parametrize(("growth", "verdict"), [(1.0, "stable"), (1.3, "exploding")])
def test_a_run_with_layers_alone_gets_a_verdict(tmp_path: Path, growth: float, verdict: str) -> None:
    rows = [
        {
            "step": i,
            "loss": 2 * growth**i,
            "grad_norm/fc1.weight": growth**i * (1 + i % 3 / 9),
            "grad_norm/fc2.weight": 2 * growth**i,
        }
        for i in range(40)
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    report = gradtrend.analyze(tmp_path)
    assert report.verdict == verdict
    assert report.series[0].metric == "total of 2 layers"
