"""`gradtrend replay --trust --layers`: the diagnosis of each replayed step, in text and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import Result

import gradtrend
from gradtrend.report.json.report import schema
from tests.replay import steps
from tests.replay.steps import batch, capture

Call = Callable[..., Result]


@pytest.fixture
def poisoned(tmp_path: Path) -> Path:
    """A capture of a step that one sample breaks."""
    data = batch(6)
    data["x"][4] = 1.0
    return capture(tmp_path / "run/debug/step7.gradtrend.pt", steps.standardised, [data, batch(6)], autocast=None)


@pytest.fixture
def quiet(tmp_path: Path) -> Path:
    """A capture of a sound step."""
    return capture(
        tmp_path / "run/debug/step7.gradtrend.pt", steps.healthy, [batch(), batch()], bad_parameters=[], autocast=None
    )


def test_the_layers_stand_in_the_text(call: Call, poisoned: Path) -> None:
    text = call("replay", poisoned, "--trust", "--layers", "--device", "cpu").stdout
    assert "Layers: what stands out" in text
    assert "The loss is not finite; the first to give NaN or inf is 0 (PerSampleNorm)." in text
    assert "Gradients by depth (input first)" in text
    assert "by heart" not in text
    assert "Save this step" not in text
    assert text.count("Precisions") == 1


def test_what_to_do_about_them_stands_below_what_the_replay_says(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "run/debug/step7.gradtrend.pt"
    capture(path, steps.healthy, [batch()], bad_parameters=[], autocast=None, change=_kill)
    text = call("replay", path, "--trust", "--layers", "--device", "cpu").stdout
    assert "Every gradient is exactly zero: no step changes the model." in text
    assert "Find what stops the gradient behind 2" in text.split("\nNext\n")[1]


def _kill(model: Any) -> None:
    for parameter in model.parameters():
        parameter.zero_()


def test_without_the_option_they_do_not(call: Call, poisoned: Path) -> None:
    assert "Gradients by depth" not in call("replay", poisoned, "--trust", "--device", "cpu").stdout
    done = call("replay", poisoned, "--trust", "--device", "cpu", "--format", "json")
    assert json.loads(done.stdout)["replays"][0]["diagnosis"] is None


def test_without_trust_nothing_is_run(call: Call, poisoned: Path) -> None:
    done = call("replay", poisoned, "--layers", "--format", "json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["replays"][0]["diagnosis"] is None


def test_json_fits_the_schema(call: Call, quiet: Path) -> None:
    done = call("replay", quiet, "--trust", "--layers", "--device", "cpu", "--format", "json")
    assert done.exit_code == 0
    (replay,) = json.loads(done.stdout)["replays"]
    found = replay["diagnosis"]
    whole = schema()
    jsonschema.validate(found, {"$defs": whole["$defs"], "$ref": "#/$defs/diagnosis"})
    assert [layer["layer"] for layer in found["layers"]] == ["0", "2"]
    assert {layer["calls"] for layer in found["layers"]} == {2}  # one call a microbatch
    assert (found["overfit"], found["precisions"]) == (None, [])
    assert found["gradient_norm"] == pytest.approx(replay["sweep"][0]["gradient_norm"])


def test_from_python(quiet: Path) -> None:
    (result,) = gradtrend.replay(quiet, trust=True, device="cpu", layers=True)
    assert isinstance(result.diagnosis, gradtrend.Diagnosis)
    assert gradtrend.replay(quiet, trust=True, device="cpu")[0].diagnosis is None


def test_a_loss_scale_does_not_stand_in_the_gradients(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "run/debug/step7.gradtrend.pt"
    capture(path, steps.healthy, [batch()], bad_parameters=[], autocast=torch.float16, loss_scale=1024.0)
    (result,) = gradtrend.replay(path, trust=True, device="cpu", layers=True)
    assert result.precision == "float16-scaled"
    assert result.diagnosis is not None
    norms = [layer.gradient.norm for layer in result.diagnosis.layers if layer.gradient is not None]
    assert sum(norm**2 for norm in norms) ** 0.5 == pytest.approx(result.diagnosis.gradient_norm, rel=1e-6)


def test_a_model_that_refuses_to_be_watched_is_judged_all_the_same(
    quiet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*given: object) -> None:
        raise TypeError("no hooks here")

    monkeypatch.setattr("gradtrend.replay.diagnose.step.StepWatch", refused)
    (result,) = gradtrend.replay(quiet, trust=True, device="cpu", layers=True)
    assert result.diagnosis is None
    assert result.outcome == "not-reproduced"
    assert "Diagnosing the layers failed: TypeError: no hooks here" in result.notes
