"""Trusting a capture loads what was listed and nothing else; what no capture is made of is refused even so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from torch import nn

from gradtrend.cli import main
from gradtrend.ingest.captures import read_capture
from gradtrend.model.replay import Outcome, Replay
from gradtrend.replay import ReplayOptions, replay_captures
from tests.replay import steps
from tests.replay.steps import batch, capture, edited, replayed_one


class Calls:
    """Pickled as a call of any function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> Any:
        return self.function, self.arguments


def touch(path: str) -> Any:
    """What a hostile file would rather call by the names of Python's own functions."""
    Path(path).touch()
    return torch.zeros(1)


class WithExtraState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.extra: Any = None

    def get_extra_state(self) -> Any:
        return self.extra

    def set_extra_state(self, state: Any) -> None:
        self.extra = state

    def forward(self, x: Any) -> Any:
        return self.net(x)


def with_extra_state() -> Any:
    return WithExtraState(), steps.mean_square


def refused(path: Path) -> Replay:
    result = replayed_one(path)
    assert result.outcome is Outcome.CANNOT_RUN
    assert "refused" in result.why[0]
    assert "Do not trust" in (result.hint or "")
    return result


def test_objects_in_the_random_state(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    path = capture(tmp_path / "a.gradtrend.pt", steps.healthy, [batch()])
    edited(path, rng={"torch": torch.get_rng_state(), "python": Calls(touch, str(mark))})
    assert "random state holds an object" in refused(path).why[0]
    assert not mark.exists()


@pytest.mark.parametrize("function", [os.system, exec, eval, os.unlink, getattr, __import__])
def test_functions_of_python_s_own(tmp_path: Path, function: Any) -> None:
    for field, place in (("microbatches", [{"x": Calls(function, "mark")}]), ("model_state", None)):
        path = capture(tmp_path / "a.gradtrend.pt", with_extra_state, [batch()])
        state = torch.load(path, weights_only=True)["model_state"]
        edited(path, **{field: place if place is not None else state | {"_extra_state": Calls(function, "mark")}})
        result = refused(path)
        assert any(function.__name__ in why for why in result.inspection.refused)
        path.unlink()


def test_an_object_in_extra_state_is_listed_before_it_is_made(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    path = capture(tmp_path / "a.gradtrend.pt", with_extra_state, [batch()], autocast=None, bad_parameters=[])
    state = torch.load(path, weights_only=True)["model_state"]
    edited(path, model_state=state | {"_extra_state": Calls(touch, str(mark))})
    told: list[tuple[str, bool]] = []
    options = ReplayOptions(trust=True, device="cpu", announce=lambda text: told.append((text, mark.exists())))
    (inspected,) = replay_captures([(str(path), read_capture(path))], ReplayOptions())
    assert "tests.replay.test_trust.touch" in inspected.inspection.imports
    assert not mark.exists()
    (result,) = replay_captures([(str(path), read_capture(path))], options)
    assert result.outcome is Outcome.NOT_REPRODUCED
    assert mark.exists()
    ((text, done),) = told
    assert "tests.replay.test_trust.touch" in text
    assert not done


def test_a_name_that_leads_through_another_module(tmp_path: Path) -> None:
    path = capture(tmp_path / "a.gradtrend.pt", steps.healthy, [batch()])
    edited(path, model={"factory": "tests.replay.steps:torch.nn.Linear", "kwargs": "{}"})
    result = replayed_one(path)
    assert result.outcome is Outcome.CANNOT_RUN
    assert "by way of another module" in result.why[0]
    for loader in ("torch:os.system", "torch:load", "torch.hub:load", "numpy:load", "test.support.os_helper:rmtree"):
        edited(path, model={"factory": loader, "kwargs": "{}"})
        assert "makes no model" in refused(path).why[0]
    edited(path, model={"factory": "subprocess:run", "kwargs": '{"args": "true"}'})
    assert "makes no model" in refused(path).why[0]


def test_the_command_lists_what_it_imports_on_standard_error(tmp_path: Path) -> None:
    path = capture(tmp_path / "a.gradtrend.pt", steps.healthy, [batch()], autocast=None)
    done = CliRunner().invoke(main, ["replay", str(path), "--trust"])
    assert "--trust: importing and calling tests.replay.steps:healthy" in done.stderr
    assert "importing" not in done.stdout
    assert "importing" not in CliRunner().invoke(main, ["replay", str(path)]).stderr


def test_a_capture_that_is_written_over_while_it_is_replayed(tmp_path: Path) -> None:
    """A script without a guard trains again when it is imported, and may write where its capture lies."""
    path = capture(tmp_path / "a.gradtrend.pt", steps.healthy, [batch()])
    contents = read_capture(path)
    capture(tmp_path / "b.gradtrend.pt", steps.healthy, [batch()]).replace(path)  # the old file stays open
    (result,) = replay_captures([(str(path), contents)], ReplayOptions(trust=True, device="cpu"))
    assert result.outcome is Outcome.NOT_REPRODUCED
    contents = read_capture(path)
    with path.open("r+b") as file:
        file.write(b"other")
    (result,) = replay_captures([(str(path), contents)], ReplayOptions(trust=True, device="cpu"))
    assert result.outcome is Outcome.CANNOT_RUN
    assert "was written to while it was read" in result.why[0]
