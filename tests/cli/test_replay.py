"""`gradtrend replay` and `analyze --replay`: exit codes, text, JSON; hostile files; without trust nothing runs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import torch
from click.testing import Result

from gradtrend.report.json.report import schema
from tests.ingest.runs.finding.test_stores import trackio
from tests.places import CAPTURES
from tests.processes import python
from tests.replay import steps
from tests.replay.steps import batch, capture

Call = Callable[..., Result]
FIXTURE = CAPTURES / "lightly_train"


@pytest.fixture
def poisoned(tmp_path: Path) -> Path:
    """A run folder with a capture of a step that one sample breaks."""
    data = batch(6)
    data["x"][4] = 1.0
    capture(tmp_path / "run/debug/step7.gradtrend.pt", steps.standardised, [data], autocast=None)
    return tmp_path / "run"


@pytest.fixture
def quiet(tmp_path: Path) -> Path:
    """A run folder with a capture that names nothing bad."""
    capture(tmp_path / "run/debug/step7.gradtrend.pt", steps.healthy, [batch()], bad_parameters=[], autocast=None)
    return tmp_path / "run"


def test_a_real_capture_of_lightly_train_is_inspected_without_it(call: Call) -> None:
    done = call("replay", FIXTURE)
    assert done.exit_code == 3
    for words in (
        "inspected only",
        "lightly-train, step 0, rank 0",
        "30 parameters named bad",
        "image float32 (8x3x32x32)",
    ):
        assert words in " ".join(done.stdout.split())
    assert "ImageClassificationTrain" in done.stdout
    assert "--trust" in done.stdout
    (replay,) = json.loads(call("replay", FIXTURE, "--format", "json").stdout)["replays"]
    assert replay["inspection"]["bad_parameters"][0] == "model.backbone._features.conv1.weight"
    assert replay["inspection"]["nonfinite"][0]["role"] == "buffer"


def test_a_real_capture_whose_model_is_not_here_cannot_run(call: Call) -> None:
    done = call("replay", FIXTURE, "--trust")
    assert done.exit_code == 3
    text = " ".join(done.stdout.split())
    assert "cannot run (nothing is known about the step)" in text
    assert "'lightly_train'" in text or "does not fit the rebuilt model" in text


def test_confirmed_exits_1_and_names_the_sample(call: Call, poisoned: Path) -> None:
    done = call("replay", poisoned, "--trust", "--device", "cpu")
    assert done.exit_code == 1
    text = " ".join(done.stdout.split())
    for words in (
        "confirmed: the data, in 0 (float32 on cpu)",
        "Sample 4 (img_4.png) of 6",
        "Precisions",
        "operator div",
    ):
        assert words in text


def test_a_step_that_fails_without_a_word_cannot_run(call: Call, tmp_path: Path) -> None:
    capture(tmp_path / "run/debug/step7.gradtrend.pt", steps.asserting, [batch()], autocast=None)
    done = call("replay", tmp_path / "run", "--trust", "--device", "cpu")
    assert done.exit_code == 3
    assert "running the step in float32 failed: AssertionError." in " ".join(done.stdout.split())


def test_a_precision_in_which_it_fails_without_a_word_is_named(call: Call, tmp_path: Path) -> None:
    capture(tmp_path / "run/debug/step7.gradtrend.pt", steps.asserting_in_half, [batch()], autocast=None)
    done = call("replay", tmp_path / "run", "--trust", "--device", "cpu", "--format", "json")
    (replay,) = json.loads(done.stdout)["replays"]
    assert {row["precision"]: row["problem"] for row in replay["sweep"]}["bfloat16"] == "AssertionError"


def test_without_trust_exit_3_and_what_was_seen(call: Call, poisoned: Path) -> None:
    done = call("replay", poisoned)
    assert done.exit_code == 3
    assert "x float32 (6x4)" in " ".join(done.stdout.split())
    assert "steps:standardised" in done.stdout


def test_nothing_bad_seen_or_reproduced_exits_0(call: Call, quiet: Path) -> None:
    assert call("replay", quiet).exit_code == 0
    done = call("replay", quiet, "--trust", "--device", "cpu")
    assert done.exit_code == 0
    assert "not reproduced" in done.stdout


def test_a_capture_file_and_a_folder_below_debug_can_be_given(call: Call, poisoned: Path) -> None:
    for path in (poisoned / "debug/step7.gradtrend.pt", poisoned / "debug", poisoned.parent):
        done = call("replay", path, "--trust", "--device", "cpu", "--format", "json")
        assert done.exit_code == 1, path
        assert json.loads(done.stdout)["replays"][0]["cause"] == "data"


def test_json_is_strict_and_holds_everything(call: Call, poisoned: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    done = call("replay", poisoned, "--trust", "--device", "cpu", "--format", "json", "-o", target)
    assert (done.exit_code, done.stdout) == (1, "")
    report = json.loads(target.read_text(), parse_constant=lambda word: pytest.fail(f"{word} in JSON"))
    assert report["exit_code"] == 1
    (replay,) = report["replays"]
    assert replay["outcome"] == "confirmed"
    assert replay["sweep"][0]["loss"] is None
    assert replay["sweep"][0]["nonfinite_fields"]["loss"] == "nan"
    assert replay["blame"]["samples"] == [{"microbatch": 0, "index": 4, "identity": "img_4.png"}]
    assert replay["findings"][0]["rule"] == "GT601"
    assert replay["findings"][0]["actions"]


@pytest.mark.parametrize("trust", [True, False])
def test_analyze_takes_the_replay_in(call: Call, poisoned: Path, trust: bool) -> None:
    rows = [{"step": step, "grad_norm": 1.0 + 0.1 * math.sin(step), "loss": 2.0 - 0.01 * step} for step in range(100)]
    (poisoned / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    words = ["--replay", *(["--trust"] if trust else [])]
    report = json.loads(call("analyze", poisoned, "--format", "json", *words).stdout)
    jsonschema.validate(report, schema())
    run = report["runs"][0]
    (seen,) = run["captures"]
    assert seen["replay"]["outcome"] == ("confirmed" if trust else "inspected")
    rules = {finding["rule"] for finding in run["findings"]}
    assert ("GT601" in rules) == trust
    assert "GT601" in run["checks"]["ran"]
    text = call("analyze", poisoned, *words).stdout
    assert "replayed:" in text


def test_analyze_replays_what_lies_beside_a_store(call: Call, poisoned: Path) -> None:
    trackio(poisoned / "trackio" / "project.db", "only")
    (poisoned / "debug").rename(poisoned / "trackio" / "debug")
    for path in (poisoned / "trackio", poisoned / "trackio" / "project.db"):
        (run,) = json.loads(call("analyze", path, "--format", "json", "--replay").stdout)["runs"]
        (seen,) = run["captures"]
        assert seen["replay"]["outcome"] == "inspected"
        assert "folder" not in run


def test_a_run_by_its_number_is_replayed_by_its_folder(call: Call, poisoned: Path) -> None:
    name = f"{poisoned}#1"
    assert call("replay", name).exit_code == call("replay", poisoned).exit_code


def test_analyze_alone_says_that_nothing_was_replayed(call: Call, poisoned: Path) -> None:
    run = json.loads(call("analyze", poisoned, "--format", "json").stdout)["runs"][0]
    assert run["captures"][0]["replay"] is None
    assert {"rule": "GT601", "reason": "no step was replayed"} in run["checks"]["skipped"]


def test_a_captured_explosion_is_no_nan(call: Call, quiet: Path) -> None:
    path = quiet / "debug/step7.gradtrend.pt"
    torch.save(torch.load(path, weights_only=True) | {"gradient_norm": 3.0, "step": 50}, path)
    rows = [{"step": step, "grad_norm": 1.0 + 0.1 * math.sin(step), "loss": 2.0 - 0.01 * step} for step in range(100)]
    (quiet / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    run = json.loads(call("analyze", quiet, "--format", "json").stdout)["runs"][0]
    assert (run["verdict"], run["nonfinite"]) == ("stable", None)


def test_no_capture(call: Call, tmp_path: Path) -> None:
    done = call("replay", tmp_path)
    assert done.exit_code == 3
    assert "no captured step" in done.stderr
    assert call("replay", tmp_path / "gone").exit_code == 3


def test_a_damaged_capture_beside_a_good_one(call: Call, poisoned: Path) -> None:
    whole = (poisoned / "debug/step7.gradtrend.pt").read_bytes()
    (poisoned / "debug/step9.gradtrend.pt").write_bytes(whole[: len(whole) // 2])
    done = call("replay", poisoned, "--trust", "--device", "cpu")
    assert done.exit_code == 1
    assert "truncated or damaged" in done.stdout
    (poisoned / "debug/step7.gradtrend.pt").unlink()
    alone = call("replay", poisoned, "--trust")
    assert alone.exit_code == 3
    assert "cannot run" in alone.stdout


class Trap:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_runs_code_does_not_run_it(call: Call, poisoned: Path, tmp_path: Path) -> None:
    path, mark = poisoned / "debug/step7.gradtrend.pt", tmp_path / "ran"
    torch.save(torch.load(path, weights_only=True) | {"extra": Trap(mark)}, path)
    assert call("replay", poisoned).exit_code == 3
    assert call("replay", poisoned, "--trust", "--device", "cpu").exit_code == 1
    assert not mark.exists()  # even trust builds only what the model and the batch need


def test_wrong_options(call: Call, poisoned: Path) -> None:
    assert call("replay", poisoned, "--precision", "float8").exit_code == 2
    assert call("replay").exit_code == 2
    done = call("replay", poisoned, "--trust", "--device", "nonsense")
    assert done.exit_code == 3
    assert "nonsense" in done.stdout


@pytest.mark.parametrize(("name", "ours"), [("bfloat16", "bfloat16"), ("16-mixed", "float16-scaled")])
def test_a_precision_can_be_chosen(call: Call, poisoned: Path, name: str, ours: str) -> None:
    done = call("replay", poisoned, "--trust", "--device", "cpu", "--precision", name, "--format", "json")
    assert json.loads(done.stdout)["replays"][0]["precision"] == ours


@pytest.mark.parametrize("trust", [False, True])
def test_without_torch_inspecting_works_and_running_names_the_package(trust: bool) -> None:
    words = ["replay", str(FIXTURE), *(["--trust"] if trust else [])]
    code = f"import sys; sys.modules['torch'] = None\nfrom gradtrend.cli import main\nmain({words!r})"
    done = python("-c", code)
    assert done.returncode == 3
    assert "30 parameters named bad" in done.stdout
    assert ("pip install 'gradtrend[replay]'" in done.stdout) == trust
