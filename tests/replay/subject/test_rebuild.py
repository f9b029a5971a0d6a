"""What does not fit is one clear message with the difference named; without trust nothing of the user's runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from gradtrend.ingest.captures.find import read_capture
from gradtrend.model.replay import Outcome
from tests.replay import steps
from tests.replay.steps import batch, capture, edited, replayed_one


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "step.gradtrend.pt"


def why(path: Path) -> str:
    result = replayed_one(path)
    assert result.outcome is Outcome.CANNOT_RUN
    return " ".join([*result.why, result.hint or ""])


def test_the_native_format_is_read_with_weights_only(path: Path) -> None:
    capture(path, steps.normed, [batch()], autocast=torch.float16, loss_scale=1024.0, loss=1.5, rank=2)
    contents = torch.load(path, weights_only=True)
    assert (contents["format"], contents["format_version"]) == ("gradtrend.capture", 1)
    assert contents["model"]["factory"].endswith("steps:normed")
    assert json.loads(contents["model"]["kwargs"]) == {}
    assert contents["precision"] == {"autocast": "float16", "loss_scale": 1024.0}
    assert set(contents["rng"]) >= {"python", "numpy", "torch"}
    assert "1.running_mean" in contents["buffers"]
    read = read_capture(path)
    assert (read.precision, read.loss_scale, read.summary.rank) == ("float16-scaled", 1024.0, 2)


def test_without_trust_nothing_is_imported(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "imported"
    (tmp_path / "trap_module.py").write_text(f"open({str(mark)!r}, 'w').close()\nmake = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    edited(capture(path, steps.healthy, [batch()]), model={"factory": "trap_module:make", "kwargs": "{}"})
    result = replayed_one(path, trust=False)
    assert result.outcome is Outcome.INSPECTED
    assert result.inspection.imports == ("trap_module:make",)
    assert "--trust" in (result.hint or "")
    assert not mark.exists()
    assert "trap_module" not in sys.modules
    replayed_one(path)
    assert mark.exists()


def test_a_missing_module_is_named(path: Path) -> None:
    edited(capture(path, steps.healthy, [batch()]), model={"factory": "no_such_package.x:make", "kwargs": "{}"})
    assert "no_such_package" in why(path)


def test_a_missing_factory_is_named(path: Path) -> None:
    edited(capture(path, steps.healthy, [batch()]), model={"factory": f"{steps.__name__}:gone", "kwargs": "{}"})
    assert "'gone'" in why(path)


def test_a_factory_that_refuses_its_arguments(path: Path) -> None:
    edited(
        capture(path, steps.healthy, [batch()]), model={"factory": f"{steps.__name__}:healthy", "kwargs": '{"a": 1}'}
    )
    assert "'a'" in why(path)


def test_a_factory_that_gives_no_model(path: Path) -> None:
    edited(capture(path, steps.healthy, [batch()]), model={"factory": f"{steps.__name__}:not_a_model", "kwargs": "{}"})
    assert "int" in why(path)


def test_another_shape_is_named(path: Path) -> None:
    capture(path, steps.of_width, [batch()], {"width": 3})
    edited(path, model={"factory": f"{steps.__name__}:of_width", "kwargs": '{"width": 5}'})
    assert "weight (3, 4) for (5, 4)" in why(path)


def test_other_names_are_listed(path: Path) -> None:
    capture(path, steps.healthy, [batch()])
    contents = torch.load(path, weights_only=True)
    contents["model_state"]["old.weight"] = contents["model_state"].pop("0.weight")
    torch.save(contents, path)
    text = why(path)
    assert "the rebuilt model lacks old.weight" in text
    assert "the capture lacks 0.weight" in text


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod."])
def test_the_prefixes_of_wrappers_are_taken_off(path: Path, prefix: str) -> None:
    capture(path, steps.healthy, [batch()], autocast=None)
    contents = torch.load(path, weights_only=True)
    contents["model_state"] = {prefix + name: value for name, value in contents["model_state"].items()}
    contents["bad_parameters"] = [f"{prefix}0.weight"]
    torch.save(contents, path)
    assert replayed_one(path).outcome is Outcome.NOT_REPRODUCED


def test_a_step_that_fails_cannot_run(path: Path) -> None:
    capture(path, steps.failing_step, [batch()], autocast=None)
    assert "absent" in why(path)


def test_a_device_that_is_not_there(path: Path) -> None:
    capture(path, steps.healthy, [batch()])
    result = replayed_one(path, device="cuda:63")
    assert result.outcome is Outcome.CANNOT_RUN
    assert "cuda:63" in result.why[0]


def test_what_the_model_prints_does_not_reach_the_report(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replayed_one(capture(path, steps.talking, [batch()], autocast=None))
    seen = capsys.readouterr()
    assert seen.out == ""
    assert "hello" in seen.err


def test_parameters_are_replayed_in_the_type_they_were_captured_in(path: Path) -> None:
    capture(path, steps.healthy, [{"x": torch.ones(2, 4, dtype=torch.bfloat16)}], change=lambda m: m.bfloat16())
    result = replayed_one(path)
    assert (result.outcome, result.precision) == (Outcome.NOT_REPRODUCED, "bfloat16-true")
    losses = {row.precision: row.loss for row in result.sweep}
    model, step = steps.healthy()
    torch.manual_seed(0)
    model = steps.healthy()[0].bfloat16()
    assert losses["bfloat16-true"] == step(model, {"x": torch.ones(2, 4, dtype=torch.bfloat16)}).item()
    assert losses["float32"] == pytest.approx(losses["float64"], rel=1e-6)
    assert None not in losses.values()


def test_a_random_state_of_another_kind_is_said(path: Path) -> None:
    capture(path, steps.healthy, [batch()], autocast=None)
    edited(path, rng={"torch": torch.zeros(3, dtype=torch.uint8)})
    result = replayed_one(path)
    assert result.outcome is Outcome.NOT_REPRODUCED
    assert any("random state" in note for note in result.notes)
