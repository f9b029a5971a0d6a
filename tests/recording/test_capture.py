"""What is given to `save_capture` is kept, converted, or refused by name; no evidence is lost."""

from __future__ import annotations

import dataclasses
import enum
from collections import UserDict, namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gradtrend.ingest.captures import read_capture
from gradtrend.model.replay import Outcome
from gradtrend.recording import save_capture, snapshot_random_states
from tests.replay import steps
from tests.replay.steps import Step, batch, capture, replayed_one

Pair = namedtuple("Pair", ["x", "path"])


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    x: Tensor
    path: list[str]


class Colour(enum.Enum):
    RED = 3


def of_attributes() -> tuple[nn.Module, Step]:
    return steps.network(nn.ReLU()), lambda model, batch: model(batch.x).square().mean() / batch.x[2].std()


def of_an_array() -> tuple[nn.Module, Step]:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        assert isinstance(batch["x"], np.ndarray)
        return model(torch.from_numpy(batch["x"])).square().mean()

    return steps.standardised()[0], loss


def saved(path: Path, microbatches: Any, **more: Any) -> Path:
    given = {
        "model": steps.healthy()[0],
        "factory": steps.healthy,
        "step": 1,
        "rng_states": snapshot_random_states(),
    }
    return save_capture(path, microbatches=microbatches, **(given | more))


@pytest.mark.parametrize("made", [Pair, Batch, lambda x, path: SimpleNamespace(x=x, path=path)])
def test_a_batch_keeps_its_class(tmp_path: Path, made: Any) -> None:
    data = batch()
    data["x"][2] = 1.0  # its deviation is zero
    path = capture(tmp_path / "a.gradtrend.pt", of_attributes, [made(data["x"], data["path"])], autocast=None)
    result = replayed_one(path)
    assert result.outcome is Outcome.CONFIRMED
    names = [name for name in result.inspection.imports if "of_attributes" not in name]
    assert names in (
        ["tests.recording.test_capture.Pair"],
        ["tests.recording.test_capture.Batch"],
        ["types.SimpleNamespace"],
    )


def test_a_batch_of_arrays_is_replayed_with_arrays_and_its_sample_is_found(tmp_path: Path) -> None:
    x = batch(5)["x"].numpy()
    x[3] = 0.5
    path = capture(tmp_path / "a.gradtrend.pt", of_an_array, [{"x": x, "name": np.array(list("abcde"))}], autocast=None)
    result = replayed_one(path)
    assert result.blame is not None
    assert [(sample.index, sample.identity) for sample in result.blame.samples] == [(3, "d")]


def test_values_are_kept_as_plain_ones(tmp_path: Path) -> None:
    given = {
        "id": np.int64(7),
        "colour": Colour.RED,
        "file": Path("a/b.png"),
        "sizes": {1, 2},
        "more": UserDict({"y": torch.ones(2)}),
        ("a", 1): None,
        "device": torch.device("cpu"),
    }
    path = saved(tmp_path / "a.gradtrend.pt", [given])
    plain = torch.load(path, weights_only=True)["microbatches"][0]
    assert plain["id"] == 7
    assert (plain["colour"], plain["file"], plain["sizes"], plain["device"]) == (3, "a/b.png", [1, 2], "cpu")
    assert replayed_one(path).inspection.imports == ("tests.replay.steps:healthy", "collections.UserDict")


@pytest.mark.parametrize(
    ("microbatches", "words"),
    [
        ([{"x": [torch.ones(1), object()]}], r"microbatches\[0\]\['x'\]\[1\] is a builtins.object"),
        ([{"f": lambda: None}], r"\['f'\] is a builtins.function"),
        ([torch.ones(2, 2).to_sparse()], r"microbatches\[0\] is a torch.sparse_coo tensor"),
        (torch.ones(2), "list of batches, not one Tensor"),
        ({"x": torch.ones(2)}, "list of batches, not one dict"),
        ([], "empty"),
    ],
)
def test_what_cannot_be_kept_is_said_by_name(tmp_path: Path, microbatches: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        saved(tmp_path / "debug" / "a.gradtrend.pt", microbatches)
    assert not list(tmp_path.rglob("*.*"))


def test_numbers_may_be_tensors_and_settings_paths(tmp_path: Path) -> None:
    path = saved(
        tmp_path / "a.gradtrend.pt",
        [batch()],
        step=torch.tensor(5),
        loss=torch.tensor(float("nan"), requires_grad=True),
        gradient_norm=np.float32(2.5),
        loss_scale=torch.tensor(8.0),
        kwargs={"root": Path("data"), "width": np.int64(3)},
        bad_parameters=(name for name in ["0.weight"]),
    )
    contents = read_capture(path)
    assert (contents.summary.step, contents.gradient_norm, contents.loss_scale) == (5, 2.5, 8.0)
    assert contents.recipe.keywords == {"root": "data", "width": 3}
    with pytest.raises(TypeError, match="step must be an integer"):
        saved(tmp_path / "b.gradtrend.pt", [batch()], step=1.5)
    with pytest.raises(TypeError, match="loss must be a number"):
        saved(tmp_path / "b.gradtrend.pt", [batch()], loss="high")
    with pytest.raises(TypeError, match="rng_states must be what"):
        saved(tmp_path / "b.gradtrend.pt", [batch()], rng_states={})


def test_folders_are_made_and_nothing_is_written_over(tmp_path: Path) -> None:
    wanted = tmp_path / "out" / "debug" / "step7.gradtrend.pt"
    written = [saved(wanted, [batch()], step=step) for step in range(3)]
    assert [path.name for path in written] == [
        "step7.gradtrend.pt",
        "step7-2.gradtrend.pt",
        "step7-3.gradtrend.pt",
    ]
    assert [read_capture(path).summary.step for path in written] == [0, 1, 2]
    assert len(list(wanted.parent.iterdir())) == 3
