"""`capture_step` keeps the step that goes wrong as it was before it, and only that."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gradtrend.ingest.captures import read_capture
from gradtrend.model.replay import Outcome, ReplayCause
from gradtrend.recording import StepWatch, capture_step
from tests.replay import steps
from tests.replay.steps import batch, replayed_one


def train(
    folder: Path,
    factory: Callable[..., Any],
    data: Callable[[int], Any],
    count: int = 3,
    inside: Callable[[nn.Module], None] = lambda model: None,
    lr: float = 1e-3,
    **options: Any,
) -> list[StepWatch]:
    """A loop as a user writes it."""
    torch.manual_seed(0)
    model, step = factory()
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    watches = []
    for number in range(count):
        given = data(number)
        optimizer.zero_grad()
        with capture_step(folder, model=model, factory=factory, microbatches=[given], step=number, **options) as watch:
            loss = step(model, given)
            loss.backward()
            watch.record(loss)
            inside(model)
        if not watch.bad:
            optimizer.step()
        watches.append(watch)
    return watches


def constant_from(first: int) -> Callable[[int], Any]:
    def data(number: int) -> Any:
        made = batch(seed=number)
        if number >= first:
            made["x"][1] = 0.5
        return made

    return data


def test_the_bad_step_is_kept_and_fails_again(tmp_path: Path) -> None:
    watches = train(tmp_path, steps.standardised, constant_from(2))
    assert [watch.bad for watch in watches] == [False, False, True]
    assert [watch.path is None for watch in watches] == [True, True, False]
    path = watches[-1].path
    assert path == tmp_path / "debug" / "step2-rank0.gradtrend.pt"
    result = replayed_one(path)
    assert (result.outcome, result.cause) == (Outcome.CONFIRMED, ReplayCause.DATA)
    assert result.blame is not None
    assert [sample.index for sample in result.blame.samples] == [1]


def test_no_more_files_than_asked_for(tmp_path: Path) -> None:
    watches = train(tmp_path, steps.standardised, constant_from(0), count=6, limit=2)
    assert [watch.path is not None for watch in watches] == [True, True, False, False, False, False]
    assert all(watch.bad for watch in watches)  # a loop skips what is bad, whether it is written or not


def test_random_numbers_and_buffers_are_those_from_before_the_step(tmp_path: Path) -> None:
    watches = train(tmp_path, noisy_norm, constant_from(1), count=2)
    path = watches[-1].path
    assert path is not None
    losses = read_capture(path).loss
    result = replayed_one(path)
    assert result.outcome is Outcome.CONFIRMED
    assert losses is not None
    assert math.isinf(losses)
    state = torch.load(path, weights_only=True)
    assert int(state["model_state"]["0.num_batches_tracked"]) == 1  # one step before this one
    first = batch(seed=0)["x"]
    assert torch.allclose(state["model_state"]["0.running_mean"], 0.1 * first.mean(dim=0))


def noisy_norm() -> tuple[nn.Module, steps.Step]:
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.3), nn.Linear(4, 2))
    return model, lambda model, batch: model(batch["x"]).square().mean() / (batch["x"][1].std() > 0)


class Counting(nn.Module):
    """Divides by zero in its third step."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.net = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.net(x) / (self.calls != 3)


def counting() -> tuple[nn.Module, steps.Step]:
    return Counting(), steps.mean_square


def test_a_counter_outside_the_state_dict_is_kept(tmp_path: Path) -> None:
    watches = train(tmp_path, counting, lambda number: batch(seed=number))
    path = watches[-1].path
    assert path is not None
    result = replayed_one(path)
    assert (result.outcome, result.cause) == (Outcome.CONFIRMED, ReplayCause.FORWARD_OPERATOR)
    assert any("calls = 2" in note for note in result.notes)


def test_an_explosion_is_kept_with_its_baseline(tmp_path: Path) -> None:
    def data(number: int) -> Any:
        made = batch(seed=number)
        made["x"] *= 1e4 if number == 15 else 1.0
        return made

    watches = train(tmp_path, steps.healthy, data, count=17)
    assert [number for number, watch in enumerate(watches) if watch.bad] == [15]
    path = watches[15].path
    assert path is not None
    contents = read_capture(path)
    assert contents.baseline_norm is not None
    assert set(contents.baseline_norms) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert replayed_one(path).cause is ReplayCause.EXPLOSION
    assert not any(watch.bad for watch in train(tmp_path, steps.healthy, data, count=17, explosion=None))


def test_a_scaler_s_own_overflows_are_not_kept(tmp_path: Path) -> None:
    def spoil(model: nn.Module) -> None:
        for parameter in model.parameters():
            assert parameter.grad is not None
            parameter.grad.fill_(float("inf"))

    watches = train(tmp_path, steps.healthy, lambda n: batch(seed=n), 4, spoil, loss_scale=1024.0)
    assert [watch.path is not None for watch in watches] == [False, False, True, True]


def test_an_optimizer_inside_the_block_is_said_at_the_first_step(tmp_path: Path) -> None:
    def change(model: nn.Module) -> None:
        with torch.no_grad():
            model[0].weight.add_(1.0)  # type: ignore[index,operator,union-attr]

    with pytest.raises(RuntimeError, match=r"put optimizer.step\(\) behind the block"):
        train(tmp_path, steps.healthy, lambda n: batch(seed=n), inside=change)


def test_what_cannot_be_kept_is_said_at_the_first_step(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"microbatches\[0\]\['made'\]"):
        train(tmp_path, steps.healthy, lambda n: batch(seed=n, made=object()))


def test_where_writing_fails_training_goes_on(tmp_path: Path) -> None:
    (tmp_path / "debug").write_text("no folder")
    with pytest.warns(UserWarning, match="step 2 could not be captured"):
        watches = train(tmp_path, steps.standardised, constant_from(2))
    assert watches[-1].bad
    assert watches[-1].path is None


def test_an_error_in_the_block_is_not_swallowed(tmp_path: Path) -> None:
    def fail(model: nn.Module) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        train(tmp_path, steps.healthy, lambda n: batch(seed=n), inside=fail)


def in_float64() -> tuple[nn.Module, steps.Step]:
    return steps.standardised()[0].double(), lambda model, batch: model(batch["x"].double()).square().mean()


def spectral() -> tuple[nn.Module, steps.Step]:
    model = nn.ModuleDict({"inner": nn.Linear(4, 4, dtype=torch.complex64), "outer": nn.Linear(4, 1)})
    return model, lambda m, b: m["outer"](m["inner"](torch.fft.fft(b["x"])).abs()).square().mean()  # type: ignore[index]


class Odd(nn.Module):
    """Holds what models of all kinds hold: a sparse buffer, a list that holds itself, a layer not made yet."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("graph", torch.eye(4).to_sparse())
        self.notes: list[Any] = [1]
        self.notes.append(self.notes)
        self.net = nn.LazyLinear(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


def odd() -> tuple[nn.Module, steps.Step]:
    return Odd(), steps.mean_square


@pytest.mark.parametrize("factory", [in_float64, spectral, odd])
@pytest.mark.filterwarnings("error")
def test_models_of_all_kinds_are_trained_on(tmp_path: Path, factory: Any) -> None:
    assert not any(watch.bad for watch in train(tmp_path, factory, lambda n: batch(seed=n)))


def test_a_loss_may_be_a_number_and_nothing_else(tmp_path: Path) -> None:
    model, step = steps.healthy()
    with capture_step(tmp_path, model=model, factory=steps.healthy, microbatches=[batch()], step=0) as watch:
        loss = step(model, batch())
        watch.record(loss.item())
        with pytest.raises(TypeError, match="record takes one loss"):
            watch.record(torch.ones(3))
    assert not watch.bad


@pytest.mark.parametrize("settings", [{"kwargs": {"dtype": torch.float32}}, {"autocast": "bf16"}, {"loss_divisor": 0}])
def test_settings_that_cannot_be_kept_are_said_at_the_first_step(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        train(tmp_path, steps.healthy, lambda n: batch(seed=n), **settings)


def test_a_level_that_shifts_for_good_becomes_the_usual_one(tmp_path: Path) -> None:
    def data(number: int) -> Any:
        made = batch(seed=number)
        made["x"] *= 1e3 if number >= 15 else 1.0
        return made

    watches = train(tmp_path, steps.healthy, data, count=80, lr=0.0, limit=1)
    assert watches[15].bad
    assert not watches[79].bad


def test_gradients_of_zero_are_no_baseline(tmp_path: Path) -> None:
    def data(number: int) -> Any:
        made = batch(seed=number)
        made["x"] *= 0.0 if number < 12 else 1.0
        return made

    watches = train(tmp_path, no_bias, data, count=14)
    assert not any(watch.bad for watch in watches)


def no_bias() -> tuple[nn.Module, steps.Step]:
    return nn.Linear(4, 2, bias=False), steps.mean_square


class Averaging(nn.Module):
    """Its teacher follows by the `.data`, which no version counts."""

    def __init__(self) -> None:
        super().__init__()
        self.student = nn.Linear(4, 2)
        self.teacher = nn.Linear(4, 2).requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.teacher.weight.data.mul_(0.5).add_(self.student.weight.data, alpha=0.5)
        return self.student(x) - self.teacher(x).detach()


def averaging() -> tuple[nn.Module, steps.Step]:
    return Averaging(), lambda model, batch: model(batch["x"]).square().mean() / (batch["x"][1].std() > 0)


def test_a_teacher_that_follows_in_the_step_is_kept_as_it_was(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, _ = averaging()
    teacher, student = model.teacher.weight.detach().clone(), model.student.weight.detach().clone()
    watches = train(tmp_path, averaging, constant_from(1), count=2)
    path = watches[-1].path
    assert path is not None
    kept = torch.load(path, weights_only=True)["model_state"]["teacher.weight"]
    assert torch.allclose(kept, 0.5 * teacher + 0.5 * student, atol=1e-2)  # once, of one step before this one
    result = replayed_one(path)
    assert result.repeats is not None
    assert result.repeats.identical
