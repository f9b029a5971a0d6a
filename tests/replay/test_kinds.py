"""Kinds of steps that were judged wrong once: each is small, and fails as it did in somebody's model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from gradtrend.detect.rules.load import load_rules
from gradtrend.model.replay import Outcome, Replay, ReplayCause
from gradtrend.replay import with_findings
from tests.replay import steps
from tests.replay.steps import Step, batch, capture, replayed_one


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "step.gradtrend.pt"


def advice(result: Replay) -> str:
    (finding,) = with_findings(result, load_rules()).findings
    return " ".join(finding.actions)


def spectral() -> tuple[nn.Module, Step]:
    model = nn.ModuleDict({"inner": nn.Linear(4, 4, dtype=torch.complex64), "outer": nn.Linear(4, 1)})
    return model, lambda m, b: m["outer"](m["inner"](torch.fft.fft(b["x"])).abs()).square().mean()  # type: ignore[index]


def test_complex_parameters(path: Path) -> None:
    result = replayed_one(capture(path, spectral, [batch()], bad_parameters=[], autocast=None))
    assert result.outcome is Outcome.NOT_REPRODUCED
    assert result.sweep[0].finite


def in_float64() -> tuple[nn.Module, Step]:
    return steps.log_of_zero()[0].double(), lambda model, batch: model(batch["x"].double()).square().mean()


def test_a_model_in_float64_is_run_in_it(path: Path) -> None:
    result = replayed_one(capture(path, in_float64, [batch()], autocast=None))
    assert (result.outcome, result.precision) == (Outcome.CONFIRMED, "float64")
    assert result.origin is not None
    assert result.origin.dtype == "float64"


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.weight = 1.0
        self.table: dict[str, Tensor] = {"scale": torch.ones(2)}

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x) * self.weight / self.table["scale"]


def weighted() -> tuple[nn.Module, Step]:
    return Weighted(), steps.mean_square


@pytest.mark.parametrize(("name", "value"), [("weight", float("nan")), ("table", {"scale": torch.zeros(2)})])
def test_values_outside_the_state_dict_are_put_back(path: Path, name: str, value: Any) -> None:
    result = replayed_one(capture(path, weighted, [batch()], change=lambda m: setattr(m, name, value), autocast=None))
    assert result.outcome is Outcome.CONFIRMED
    assert any(name in note for note in result.notes)


def sparse() -> tuple[nn.Module, Step]:
    table = nn.EmbeddingBag(20, 4, sparse=True)
    return nn.ModuleDict({"table": table, "head": nn.Linear(4, 2)}), lambda m, b: functional.cross_entropy(
        m["head"](m["table"](b["i"])),
        b["y"],  # type: ignore[index]
    )


def test_a_bad_row_of_a_sparse_embedding_is_a_bad_state(path: Path) -> None:
    def spoil(model: nn.Module) -> None:
        model["table"].weight[17] = torch.nan  # type: ignore[index,operator,union-attr]

    ids = torch.arange(12).reshape(4, 3)
    ids[2, 1] = 17
    result = replayed_one(capture(path, sparse, [{"i": ids, "y": torch.zeros(4, dtype=torch.int64)}], change=spoil))
    assert result.cause is ReplayCause.BAD_STATE
    assert result.origin is not None
    assert result.origin.source_name == "table.weight"


class Following(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.student = nn.Linear(4, 2)
        self.teacher = nn.Linear(4, 2).requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.teacher.bias.mul_(0.9).add_(self.student.bias, alpha=0.1)
        return self.student(x) - self.teacher(x)


def following() -> tuple[nn.Module, Step]:
    return Following(), steps.mean_square


def test_a_bad_parameter_that_is_first_overwritten_is_a_bad_state(path: Path) -> None:
    def spoil(model: nn.Module) -> None:
        model.teacher.bias[1] = torch.inf  # type: ignore[index,operator,union-attr]

    result = replayed_one(capture(path, following, [batch()], change=spoil, autocast=None))
    assert result.cause is ReplayCause.BAD_STATE
    assert result.origin is not None
    assert result.origin.source_name == "teacher.bias"


def in_evaluation() -> tuple[nn.Module, Step]:
    return steps.network(nn.BatchNorm1d(8)), steps.mean_square


def test_a_running_variance_below_zero_is_a_bad_state(path: Path) -> None:
    def spoil(model: nn.Module) -> None:
        model[1].running_var[2] = -1.0  # type: ignore[index,operator,union-attr]
        model[1].eval()  # type: ignore[index,operator,union-attr]

    result = replayed_one(capture(path, in_evaluation, [batch()], change=spoil, autocast=None))
    assert result.cause is ReplayCause.BAD_STATE
    assert result.origin is not None
    shown = {given.tensor: given.negative for given in result.origin.given}
    assert shown["buffer 1.running_var"] == 1


def detecting() -> tuple[nn.Module, Step]:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        losses = [(model(one["x"]) - one["w"].log()).abs().mean() for one in batch["targets"]]
        return torch.stack(losses).mean()

    return nn.Linear(4, 4), loss


def test_samples_in_a_list_inside_the_batch(path: Path) -> None:
    def target(number: int) -> dict[str, Tensor]:
        return {"x": torch.ones(4) * number, "w": torch.ones(4) * (number != 3), "image_id": torch.tensor(70 + number)}

    result = replayed_one(
        capture(path, detecting, [{"targets": [target(number) for number in range(6)]}], autocast=None)
    )
    assert result.blame is not None
    assert [(sample.index, sample.identity) for sample in result.blame.samples] == [(3, "73")]


def inner_gradients() -> tuple[nn.Module, Step]:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        own = dict(model.named_parameters())
        first = functional.mse_loss(functional_call(model, own, (batch["x"],)), batch["y"])
        slopes = torch.autograd.grad(first, list(own.values()), create_graph=True)
        moved = {name: value - 0.1 * slope for (name, value), slope in zip(own.items(), slopes, strict=True)}
        return functional.mse_loss(functional_call(model, moved, (batch["x"] * 0.5,)), batch["y"])

    return nn.Linear(4, 1), loss


def test_a_step_that_takes_gradients_itself(path: Path) -> None:
    data = batch(5, y=torch.zeros(5, 1))
    data["y"][1, 0] = torch.inf
    result = replayed_one(capture(path, inner_gradients, [data], autocast=None))
    assert result.cause is ReplayCause.DATA
    assert result.origin is not None
    assert (result.origin.phase, result.origin.source_name) == ("forward", "microbatch 0: y")
    assert result.blame is not None
    assert [sample.index for sample in result.blame.samples] == [1]


def by_a_count() -> tuple[nn.Module, Step]:
    return nn.Linear(4, 2), lambda model, batch: (model(batch["x"]) / batch["length"][:, None]).square().mean()


def test_what_an_operator_was_given_includes_whole_numbers(path: Path) -> None:
    data = batch(4, length=torch.tensor([3, 0, 2, 5]))
    result = replayed_one(capture(path, by_a_count, [data], autocast=None))
    assert result.origin is not None
    assert [given.zeros for given in result.origin.given if given.dtype == "int64"] == [1]
    assert "divisor away from zero" in advice(result)


def test_a_healthy_step_asks_for_nothing(path: Path) -> None:
    result = replayed_one(capture(path, steps.healthy, [batch()], bad_parameters=[], autocast=None, loss=0.1))
    assert result.outcome is Outcome.NOT_REPRODUCED
    assert advice(result) == "Nothing: the step is finite, and the capture names nothing that was not."
    assert not any("float16-scaled" in sentence for sentence in result.why)


def chance() -> tuple[nn.Module, Step]:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        level = torch.randint(0, 6, (len(batch["x"]), 1)) / 5
        return (model(batch["x"]).square() - level.log()).mean()

    return nn.Linear(4, 2), loss


def test_a_sample_that_fails_by_its_random_number_is_told_so(path: Path) -> None:
    for seed in range(100):
        torch.manual_seed(seed)
        if (torch.randint(0, 6, (8, 1)) == 0).sum() == 1:
            break
    torch.manual_seed(seed)
    states = steps.snapshot_random_states()
    result = replayed_one(capture(path, chance, [batch(8)], rng_states=states, autocast=None))
    torch.manual_seed(seed)
    (place,) = (torch.randint(0, 6, (8, 1)) == 0).flatten().nonzero().flatten().tolist()
    assert result.blame is not None
    assert [sample.index for sample in result.blame.samples] == [place]
    assert result.blame.by_chance
    assert result.blame.cured


class Collecting(nn.Module):
    """Its two layers add to one list, which the model sums."""

    def __init__(self) -> None:
        super().__init__()
        shared: list[Tensor] = []
        self.first, self.second = Adding(shared), Adding(shared)
        self.losses = shared

    def forward(self, x: Tensor) -> Tensor:
        self.losses.clear()
        x = self.second(self.first(x))
        return x.mean() / (len(self.losses) - 2)


class Adding(nn.Module):
    def __init__(self, losses: list[Tensor]) -> None:
        super().__init__()
        self.net, self.losses = nn.Linear(4, 4), losses

    def forward(self, x: Tensor) -> Tensor:
        self.losses.append(x.mean().detach())
        return self.net(x)


def collecting() -> tuple[nn.Module, Step]:
    return Collecting(), lambda model, batch: model(batch["x"])


def test_a_container_that_modules_share_stays_shared(path: Path) -> None:
    result = replayed_one(capture(path, collecting, [batch()], autocast=None))
    assert result.outcome is Outcome.CONFIRMED


class Wrapped(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x)


def test_state_outside_the_state_dict_of_a_wrapped_model_is_put_back(path: Path) -> None:
    model = Wrapped(Weighted())
    model.module.weight = float("nan")
    written = steps.save_capture(
        path,
        model=model,
        factory=weighted,
        microbatches=[batch()],
        step=1,
        rng_states=steps.snapshot_random_states(),
        bad_parameters=["module.net.weight"],
        baseline_norms={"module.net.weight": 1e-9},
    )
    result = replayed_one(written)
    assert result.outcome is Outcome.CONFIRMED
    assert any("weight = nan" in note for note in result.notes)
    assert {layer.parameter: layer.usual for layer in result.layers}["net.weight"] == 1e-9


def test_many_bad_samples_are_named_as_they_are_and_the_rest_said(path: Path) -> None:
    data = batch(512)
    bad = list(range(3, 512, 8))
    data["x"][bad] = 0.5
    result = replayed_one(capture(path, steps.standardised, [data], autocast=None))
    assert result.blame is not None
    named = [sample.index for sample in result.blame.samples]
    assert named
    assert set(named) <= set(bad)
    assert "not all were searched" in (result.blame.note or "")
