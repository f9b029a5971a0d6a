"""The family of bad steps: each ends in the right verdict, module, operator, microbatch and sample."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from gradtrend.detect.rules.load import load_rules
from gradtrend.model.replay import Outcome, Replay, ReplayCause
from gradtrend.replay.conclude.findings import with_findings
from gradtrend.replay.native import snapshot_random_states
from tests.replay import steps
from tests.replay.steps import batch, capture, replayed, replayed_one


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return str(request.param)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "debug" / "step.gradtrend.pt"


def finite(result: Replay) -> dict[str, bool | None]:
    return {row.precision: row.finite for row in result.sweep}


def test_overflow_in_float16_only(path: Path, device: str) -> None:
    result = replayed_one(capture(path, steps.large, [batch()], autocast=torch.float16), device=device)
    assert (result.outcome, result.cause) == (Outcome.CONFIRMED, ReplayCause.PRECISION_RANGE)
    assert result.origin is not None
    assert (result.origin.module, result.origin.operator, result.origin.phase) == ("1", "mul", "forward")
    assert result.origin.needs is not None
    assert result.origin.needs > 65504
    assert finite(result)["float32"]
    assert finite(result)["bfloat16"]
    assert not finite(result)["float16"]
    assert " ".join(with_findings(result, load_rules()).findings[0].actions).startswith("Train in bfloat16")
    assert result.swap is not None
    assert result.swap.cured is False  # its output no longer fits the float16 layer behind it


def test_overflow_where_the_precision_is_not_recorded(path: Path) -> None:
    path = capture(path, steps.large, [batch()])
    contents = torch.load(path, weights_only=True)
    del contents["precision"]
    torch.save(contents, path)
    unknown = replayed_one(path)
    assert (unknown.precision, unknown.precision_known) == ("float16", False)
    assert unknown.cause is ReplayCause.PRECISION_RANGE
    told = replayed_one(path, setting="bf16-mixed")
    assert told.outcome is Outcome.NOT_REPRODUCED
    assert any("float16" in sentence for sentence in told.why)
    assert replayed_one(path, setting="16-mixed").cause is ReplayCause.PRECISION_RANGE


def test_a_layer_in_half_precision_within_a_float32_run(path: Path, device: str) -> None:
    def grow(model: nn.Module) -> None:
        model[0].weight.mul_(40)

    path = capture(path, steps.half_exp, [batch()], change=grow, autocast=None)
    result = replayed_one(path, device=device)
    assert result.cause is ReplayCause.PRECISION_RANGE
    assert result.origin is not None
    assert (result.origin.module, result.origin.operator, result.origin.dtype) == ("1", "exp", "float16")
    assert not any(finite(result).values())


def test_overflow_by_the_loss_scale(path: Path, device: str) -> None:
    path = capture(path, steps.gradient_of_thousands, [batch()], autocast=torch.float16, loss_scale=65536.0)
    result = replayed_one(path, device=device)
    assert (result.outcome, result.cause) == (Outcome.CONFIRMED, ReplayCause.LOSS_SCALE)
    assert finite(result)["float16"]
    assert result.origin is not None
    assert result.origin.phase == "backward"
    small = replayed_one(
        capture(path, steps.gradient_of_thousands, [batch()], autocast=torch.float16, loss_scale=2.0), device=device
    )
    assert small.outcome is Outcome.NOT_REPRODUCED


def test_log_of_zero(path: Path, device: str) -> None:
    result = replayed_one(capture(path, steps.log_of_zero, [batch()], autocast=None), device=device)
    assert (result.outcome, result.cause) == (Outcome.CONFIRMED, ReplayCause.FORWARD_OPERATOR)
    assert result.origin is not None
    assert (result.origin.module, result.origin.module_class, result.origin.operator) == ("1", "Named", "log")
    assert result.origin.where is not None
    assert "steps.py" in result.origin.where
    assert result.blame is not None
    assert result.blame.note == "every part of the batch fails alone"


@pytest.mark.parametrize("bad", [0, 2, 4])
def test_zero_by_zero_in_the_normalisation_of_one_constant_sample(path: Path, device: str, bad: int) -> None:
    data = batch(5)
    data["x"][bad] = 0.25
    result = replayed_one(capture(path, steps.standardised, [data], autocast=None), device=device)
    assert (result.outcome, result.cause) == (Outcome.CONFIRMED, ReplayCause.DATA)
    assert result.origin is not None
    assert (result.origin.module, result.origin.operator) == ("0", "div")
    assert result.blame is not None
    assert [(s.index, s.identity) for s in result.blame.samples] == [(bad, f"img_{bad}.png")]
    assert result.blame.cured


def test_an_infinite_slope_at_zero(path: Path, device: str) -> None:
    result = replayed_one(capture(path, steps.rooted, [batch()], autocast=None), device=device)
    assert (result.outcome, result.cause) == (Outcome.CONFIRMED, ReplayCause.BACKWARD_OPERATOR)
    assert result.origin is not None
    assert (result.origin.module, result.origin.phase) == ("2", "backward")
    assert "backward of sqrt" in result.origin.operator
    assert result.bad_parameters == ("1.weight", "1.bias")
    assert {layer.parameter for layer in result.layers if "non-finite" in layer.flags} == {"1.weight", "1.bias"}


def test_a_value_hidden_by_where_comes_back_in_the_gradient(path: Path, device: str) -> None:
    result = replayed_one(capture(path, steps.hidden_log, [batch()], autocast=None), device=device)
    assert result.cause is ReplayCause.BACKWARD_OPERATOR
    assert result.origin is not None
    assert "backward of log" in result.origin.operator


def test_nan_in_one_input(path: Path, device: str) -> None:
    data = batch()
    data["x"][2, 1] = math.nan
    result = replayed_one(capture(path, steps.healthy, [batch(seed=1), data], autocast=None), device=device)
    assert result.cause is ReplayCause.DATA
    assert result.origin is not None
    assert (result.origin.source, result.origin.source_name) == ("input", "microbatch 1: x")
    assert result.blame is not None
    assert result.blame.microbatches == (1,)
    assert [s.identity for s in result.blame.samples] == ["img_2.png"]
    (health,) = result.inspection.nonfinite
    assert (health.role, health.nan) == ("input", 1)


@pytest.mark.parametrize("autocast", [None, torch.bfloat16])
def test_nan_in_one_weight(path: Path, device: str, autocast: torch.dtype | None) -> None:
    def spoil(model: nn.Module) -> None:
        model[2].weight[0, 3] = math.nan

    path = capture(path, steps.healthy, [batch()], change=spoil, autocast=autocast)
    result = replayed_one(path, device=device)
    assert result.cause is ReplayCause.BAD_STATE
    assert result.origin is not None
    assert (result.origin.source, result.origin.source_name) == ("parameter", "2.weight")
    assert result.inspection.nonfinite[0].name == "2.weight"


def test_nan_in_a_buffer_that_is_used(path: Path, device: str) -> None:
    def spoil(model: nn.Module) -> None:
        model[1].running_var[0] = math.nan

    result = replayed_one(capture(path, steps.frozen_norm, [batch()], change=spoil, autocast=None), device=device)
    assert result.cause is ReplayCause.BAD_STATE
    assert result.origin is not None
    assert (result.origin.source, result.origin.source_name) == ("buffer", "1.running_var")


def test_nan_in_a_buffer_that_training_does_not_read_is_no_cause(path: Path, device: str) -> None:
    def spoil(model: nn.Module) -> None:
        model[1].running_var[0] = math.nan

    result = replayed_one(capture(path, steps.normed, [batch()], change=spoil, autocast=None), device=device)
    assert result.outcome is Outcome.NOT_REPRODUCED
    assert result.inspection.nonfinite[0].role == "buffer"


def loss_of_one_step(factory: object, data: object, change: object = None) -> tuple[float, dict[str, object]]:
    """What training itself computes: the loss as a float, and the random states at its start."""
    torch.manual_seed(0)
    model, step = factory()  # type: ignore[operator]
    if change is not None:
        with torch.no_grad():
            change(model)  # type: ignore[operator]
    torch.manual_seed(1234)
    states = snapshot_random_states()
    model.train()
    return step(model, data).item(), states


def test_dropout_draws_the_same_numbers(path: Path) -> None:
    loss, states = loss_of_one_step(steps.dropping, batch(64))
    torch.manual_seed(99)
    result = replayed_one(capture(path, steps.dropping, [batch(64)], rng_states=states, autocast=None, loss=loss))
    assert result.sweep[0].loss == loss  # bitwise
    assert result.repeats is not None
    assert result.repeats.identical


def test_python_s_random_numbers_are_restored(path: Path) -> None:
    loss, states = None, snapshot_random_states()
    model_loss, states = loss_of_one_step(steps.python_random, batch(8))
    loss = model_loss
    result = replayed_one(capture(path, steps.python_random, [batch(8)], rng_states=states, autocast=None))
    assert result.sweep[0].loss == loss


def test_batchnorm_starts_from_the_captured_buffers(path: Path) -> None:
    """A frozen BatchNorm reads its statistics, so the loss tells which ones were used; each run starts from them."""

    def stale(model: nn.Module) -> None:
        model[1].running_mean.fill_(0.3)
        model[1].running_var.fill_(4.0)

    loss, _ = loss_of_one_step(steps.frozen_norm, batch(8), stale)
    result = replayed_one(capture(path, steps.frozen_norm, [batch(8)], change=stale, autocast=None))
    assert result.sweep[0].loss == loss
    assert result.repeats is not None
    assert result.repeats.identical


def test_batchnorm_in_training_is_the_same_each_time(path: Path) -> None:
    loss, _ = loss_of_one_step(steps.normed, batch(8))
    result = replayed_one(capture(path, steps.normed, [batch(8)], autocast=None))
    assert result.sweep[0].loss == loss
    assert result.repeats is not None
    assert result.repeats.identical


def test_accumulation_of_four_with_one_bad_microbatch(path: Path, device: str) -> None:
    batches = [batch(6, seed=i) for i in range(4)]
    batches[2]["x"][4] = 1.0
    result = replayed_one(capture(path, steps.standardised, batches, autocast=None), device=device)
    assert result.cause is ReplayCause.DATA
    assert result.origin is not None
    assert result.origin.microbatch == 2
    assert result.blame is not None
    assert result.blame.microbatches == (2,)
    assert [(s.microbatch, s.index) for s in result.blame.samples] == [(2, 4)]


def test_the_accumulated_gradient_is_the_one_of_training(path: Path) -> None:
    batches = [batch(6, seed=i) for i in range(4)]
    torch.manual_seed(0)
    model, step = steps.healthy()
    for data in batches:
        (step(model, data) / 4).backward()
    norm = torch.linalg.vector_norm(torch.cat([p.grad.flatten() for p in model.parameters()])).item()
    result = replayed_one(capture(path, steps.healthy, batches, autocast=None))
    assert result.sweep[0].gradient_norm == pytest.approx(norm, rel=1e-6)


def test_a_nested_batch(path: Path, device: str) -> None:
    images = [torch.randn(5, 4) for _ in range(2)]
    images[1][3] = 0.0
    data = {"views": [{"image": images[0]}, {"image": images[1]}], "rest": (torch.zeros(5), ["a", "b", "c", "d", "e"])}
    result = replayed_one(capture(path, steps.nested, [data], autocast=None), device=device)
    assert result.cause is ReplayCause.DATA
    assert result.blame is not None
    assert [(s.index, s.identity) for s in result.blame.samples] == [(3, "d")]


def test_two_bad_samples(path: Path) -> None:
    data = batch(16)
    data["x"][3] = data["x"][12] = 1.0
    result = replayed_one(capture(path, steps.standardised, [data], autocast=None))
    assert result.blame is not None
    assert [s.index for s in result.blame.samples] == [3, 12]
    assert result.blame.cured


def test_a_flaky_module(path: Path) -> None:
    result = replayed_one(capture(path, steps.flaky, [batch()], autocast=None))
    assert (result.outcome, result.cause) == (Outcome.FLAKY, None)
    assert result.repeats is not None
    assert 0 < result.repeats.failures < result.repeats.runs


def test_a_result_that_differs_each_time(path: Path) -> None:
    result = replayed_one(capture(path, steps.wandering, [batch()], autocast=None))
    assert result.outcome is Outcome.FLAKY
    assert result.repeats is not None
    assert result.repeats.failures == 0
    assert not result.repeats.identical


def test_two_ranks_are_one_event(tmp_path: Path, device: str) -> None:
    bad = batch(6)
    bad["x"][1] = 2.0
    paths = [
        capture(tmp_path / f"rank{rank}.gradtrend.pt", steps.standardised, [data], rank=rank, world_size=2)
        for rank, data in enumerate([batch(6, seed=5), bad])
    ]
    first, second = replayed(*paths, device=device)
    assert (first.outcome, first.cause) == (Outcome.CONFIRMED, ReplayCause.OTHER_RANK)
    assert "Rank 1" in first.why[0]
    assert (second.outcome, second.cause) == (Outcome.CONFIRMED, ReplayCause.DATA)


def test_a_rank_alone_that_does_not_reproduce_asks_for_the_others(path: Path) -> None:
    result = replayed_one(capture(path, steps.healthy, [batch()], rank=1, world_size=2, autocast=None))
    assert result.outcome is Outcome.NOT_REPRODUCED
    assert any("other ranks" in note for note in result.notes)


def test_masks_of_minus_infinity_are_not_blamed(path: Path, device: str) -> None:
    data = {"x": torch.randn(4, 3, 4)}
    healthy = replayed_one(capture(path, steps.attending, [data], {"broken": False}, autocast=None), device=device)
    assert healthy.outcome is Outcome.NOT_REPRODUCED
    broken = replayed_one(capture(path, steps.attending, [data], {"broken": True}, autocast=None), device=device)
    assert broken.origin is not None
    assert (broken.origin.module, broken.origin.operator) == ("0.after", "log")
    assert not any(row.first_bad_module for row in healthy.sweep)


def test_a_finite_explosion(path: Path) -> None:
    norm = replayed_one(capture(path, steps.steep, [batch()], {"factor": 1e6}, autocast=None)).sweep[0].gradient_norm
    assert norm is not None
    recorded = {"bad_parameters": [], "gradient_norm": norm, "autocast": None}
    usual = {"baseline_norm": norm / 50, "baseline_norms": {"0.weight": norm / 1e4, "2.weight": norm}}
    result = replayed_one(capture(path, steps.steep, [batch()], {"factor": 1e6}, **recorded, **usual))
    assert (result.outcome, result.cause) == (Outcome.CONFIRMED, ReplayCause.EXPLOSION)
    assert sum(layer.share or 0 for layer in result.layers) == pytest.approx(1)
    assert [layer.parameter for layer in result.layers if "grown" in layer.flags] == ["0.weight"]
    assert any("50 times that" in sentence for sentence in result.why)
    other = replayed_one(capture(path, steps.steep, [batch()], {"factor": 1.0}, **recorded, **usual))
    assert other.outcome is Outcome.NOT_REPRODUCED
    assert any("does not match" in sentence for sentence in other.why)


def test_a_finite_step_is_no_explosion_where_nothing_says_what_is_usual(path: Path) -> None:
    norm = replayed_one(capture(path, steps.steep, [batch()], {"factor": 1e6}, autocast=None)).sweep[0].gradient_norm
    assert norm is not None
    captured = capture(path, steps.steep, [batch()], {"factor": 1e6}, bad_parameters=[], gradient_norm=norm)
    result = replayed_one(captured)
    assert result.outcome is Outcome.NOT_REPRODUCED
    assert any("finite and as recorded" in sentence for sentence in result.why)
    assert replayed_one(captured, usual_norm=norm / 9).outcome is Outcome.NOT_REPRODUCED
    assert replayed_one(captured, usual_norm=norm / 11).cause is ReplayCause.EXPLOSION  # the run's log says so


def test_the_sample_that_carries_an_explosion_is_named(path: Path) -> None:
    data = batch(6)
    data["x"][4] *= 1e5
    captured = capture(path, steps.steep, [data], {"factor": 1.0}, bad_parameters=[], autocast=None, baseline_norm=1.0)
    result = replayed_one(captured)
    assert result.cause is ReplayCause.EXPLOSION
    assert result.blame is not None
    assert [(s.index, s.identity) for s in result.blame.samples] == [(4, "img_4.png")]
    assert len([share for share in result.shares if share.sample is not None]) == 6


@pytest.mark.parametrize(
    ("kind", "cause", "module", "operator"),
    [
        ("half-exp", ReplayCause.PRECISION_RANGE, "layer2.relu", "exp"),
        ("sqrt", ReplayCause.BACKWARD_OPERATOR, "layer2.relu", "div (backward of sqrt)"),
        ("per-image", ReplayCause.DATA, "first", "div"),
    ],
)
def test_a_small_resnet(path: Path, device: str, kind: str, cause: ReplayCause, module: str, operator: str) -> None:
    data = steps.images(poisoned=5 if kind == "per-image" else None)
    result = replayed_one(capture(path, steps.resnet, [data], {"kind": kind}, autocast=None), device=device)
    assert (result.outcome, result.cause) == (Outcome.CONFIRMED, cause)
    assert result.origin is not None
    assert (result.origin.module, result.origin.operator) == (module, operator)
    if kind == "per-image":
        assert result.blame is not None
        assert [s.identity for s in result.blame.samples] == ["train/0005.png"]


@pytest.mark.parametrize("factory", [steps.writing_to_its_batch, steps.following])
def test_each_run_starts_from_the_captured_batch_and_parameters(path: Path, factory: object) -> None:
    loss, _ = loss_of_one_step(factory, batch(8))
    result = replayed_one(capture(path, factory, [batch(8)], autocast=None))  # type: ignore[arg-type]
    assert [row.loss for row in result.sweep[:1]] == [loss]
    assert result.repeats is not None
    assert result.repeats.identical
    assert result.outcome is Outcome.NOT_REPRODUCED


def test_a_microbatch_alone_gets_the_random_numbers_it_had(path: Path) -> None:
    torch.manual_seed(5)
    states = snapshot_random_states()
    drawn = [torch.rand(()).item() for _ in range(3)]
    smallest = drawn.index(min(drawn))
    assert smallest != 0
    limit = (sorted(drawn)[0] + sorted(drawn)[1]) / 2
    batches = [batch(4, below=torch.tensor(limit)) for _ in range(3)]
    result = replayed_one(capture(path, steps.rarely_overflowing, batches, rng_states=states, autocast=None))
    assert result.outcome is Outcome.CONFIRMED
    assert result.blame is not None
    assert result.blame.microbatches == (smallest,)


def test_a_compiled_model_is_replayed_as_written(path: Path) -> None:
    result = replayed_one(capture(path, steps.compiled, [batch()], autocast=None))
    assert result.cause is ReplayCause.FORWARD_OPERATOR
    assert result.origin is not None
    assert (result.origin.module, result.origin.operator) == ("_orig_mod.1", "log")
    assert any("compiled" in note for note in result.notes)


def test_a_step_that_takes_no_part_of_a_batch_names_the_microbatch_all_the_same(path: Path) -> None:
    result = replayed_one(capture(path, steps.of_whole_batches, [batch()], autocast=None))
    assert result.blame is not None
    assert result.blame.microbatches == (0,)
    assert "part of the batch" in (result.blame.note or "")


def test_every_outcome_and_cause_has_a_rule(path: Path) -> None:
    result = replayed_one(capture(path, steps.healthy, [batch()], autocast=None))
    for cause in ReplayCause:
        told = with_findings(replace(result, outcome=Outcome.CONFIRMED, cause=cause), load_rules())
        assert told.findings[0].name == f"replay-{cause.value}"
        assert told.findings[0].actions
    for outcome in (Outcome.FLAKY, Outcome.NOT_REPRODUCED, Outcome.CANNOT_RUN):
        told = with_findings(replace(result, outcome=outcome, cause=None), load_rules())
        assert told.findings[0].name == f"replay-{outcome.value}"
