"""Things that are easily got wrong, each with the run that shows it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import gradtrend
from gradtrend.model.report import RunReport
from gradtrend.model.runlog import Settings

NAN = math.nan


def judged(folder: Path, columns: dict[str, list[float]], name: str = "metrics.jsonl") -> RunReport:
    length = max(map(len, columns.values()))
    rows = [{"step": i} | {k: v[i] for k, v in columns.items() if i < len(v)} for i in range(length)]
    (folder / name).write_text("\n".join(map(json.dumps, rows)))
    return gradtrend.analyze(folder)


def steady(points: int) -> list[float]:
    return [1 + i * 7 % 5 / 9 for i in range(points)]


def learns(points: int) -> list[float]:
    return [2.0 - i / points for i in range(points)]


@pytest.mark.parametrize("written", ["bf16-mixed", "bfloat16", "BF16", "torch.bfloat16"])
def test_no_loss_scaler_excuses_nan_in_bfloat16(written: str) -> None:
    assert Settings(precision=written).in_float16 is False


@pytest.mark.parametrize("written", ["16-mixed", "fp16", "torch.float16", "half", "16"])
def test_float16_under_its_names(written: str) -> None:
    assert Settings(precision=written).in_float16 is True


def test_a_layer_one_point_short_is_part_of_the_total(tmp_path: Path) -> None:
    report = judged(
        tmp_path, {f"grad_norm/l{i}.weight": steady(40 if i else 39) for i in range(5)} | {"loss": learns(40)}
    )
    assert report.verdict == "stable"
    assert report.series[0].metric == "total of 5 layers"


def test_a_masked_loss_beside_two_norms(tmp_path: Path) -> None:
    norms = {f"{part}_grad_norm": [*steady(40), *[NAN] * 10] for part in ("actor", "critic")}
    report = judged(tmp_path, norms | {"loss": [*learns(40), *[0.0] * 10]})
    assert report.nonfinite is not None
    assert report.nonfinite.cause == "masked"
    assert "GT203" in {finding.rule for finding in report.findings}


def test_skips_before_an_explosion_give_no_negative_lead(tmp_path: Path) -> None:
    norm = [NAN, NAN, *steady(98), *[1.3**i for i in range(50)]]
    report = judged(tmp_path, {"grad_norm": norm, "loss": [2.0 + max(0, i - 100) for i in range(150)]})
    assert report.verdict == "exploding"
    assert report.nonfinite is not None
    assert report.nonfinite.lead_steps is None


@pytest.mark.parametrize("after", [2.0, 3.0, 10.0])
def test_a_learning_rate_that_jumps_was_not_warmed_up(tmp_path: Path, after: float) -> None:
    norm = steady(400)
    norm[130:133] = [80.0, 60.0, 70.0]
    rates = [1e-3] * 150 + [after * 1e-3] * 250
    report = judged(tmp_path, {"grad_norm": norm, "loss": learns(400), "lr": rates})
    assert report.verdict == "stable"
    assert "GT105" in {finding.rule for finding in report.findings}


def test_a_last_row_of_nulls_is_no_collapse(tmp_path: Path) -> None:
    report = judged(tmp_path, {"grad_norm": [*steady(40), None], "loss": [*learns(40), None]})  # type: ignore[list-item]
    assert report.verdict == "stable"


@pytest.mark.parametrize("points", [200, 201])
def test_a_norm_logged_every_other_row_is_not_nan_between(tmp_path: Path, points: int) -> None:
    norm = [value if i % 2 == 0 else None for i, value in enumerate(steady(points))]
    report = judged(tmp_path, {"grad_norm": norm, "loss": learns(points)})  # type: ignore[dict-item]
    assert report.nonfinite is None


def test_a_word_about_nan_before_the_run_went_on_is_no_collapse(tmp_path: Path) -> None:
    lines = [f"step {i} | loss = {2 - i / 400:.4f} | grad_norm = {norm:.4f}" for i, norm in enumerate(steady(200))]
    lines.insert(150, "Loss is nan, skipping this batch")
    (tmp_path / "train.log").write_text("\n".join(lines))
    assert gradtrend.analyze(tmp_path).verdict == "stable"


def test_the_last_words_date_the_collapse_after_the_last_row(tmp_path: Path) -> None:
    lines = [f"step {10 * i} | loss = 2.0 | grad_norm = {norm:.4f}" for i, norm in enumerate(steady(40))]
    (tmp_path / "train.log").write_text("\n".join([*lines, "Loss is nan, stopping training\n"]))
    report = gradtrend.analyze(tmp_path)
    assert report.verdict == "nan-collapse"
    assert report.nonfinite is not None
    assert {f.first_step for f in report.findings if f.rule == "GT201"} == {400}


def test_layers_called_l1_to_l3(tmp_path: Path) -> None:
    report = judged(tmp_path, {f"grad_norm/l{i}": steady(40) for i in (1, 2, 3)} | {"loss": learns(40)})
    assert {series.layer for series in report.series if series.role == "grad_norm"} == {None, "l1", "l2", "l3"}


def test_a_launchers_log_does_not_join_the_runs_below_it(tmp_path: Path) -> None:
    lines = [f"step {i} loss 2.0 grad_norm {norm + i % 5 / 9}" for i, norm in enumerate(steady(20))]
    (tmp_path / "launch.log").write_text("\n".join(lines))
    for name in ("a", "b"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        norms = [norm * (1 + (name == "b") * i % 3 / 5) for i, norm in enumerate(steady(40))]
        judged(tmp_path / "runs" / name, {"grad_norm": norms, "loss": learns(40)})
    with pytest.raises(gradtrend.InputError, match="holds 3 runs"):
        gradtrend.analyze(tmp_path)


def rising(decades: float) -> list[float]:
    """A norm that is steady over half of the run, and then rises by so many decades to its end."""
    return [norm * 10 ** (decades * max(0, i - 100) / 100) for i, norm in enumerate(steady(201))]


@pytest.mark.parametrize(("decades", "falls_by"), [(3.0, 0.2), (12.0, 0.8)])
def test_a_rise_of_decades_is_an_explosion_though_the_loss_falls(
    tmp_path: Path, decades: float, falls_by: float
) -> None:
    loss = [2.0 * (1 - falls_by * i / 200) for i in range(201)]
    assert judged(tmp_path, {"grad_norm": rising(decades), "loss": loss}).verdict == "exploding"


def test_a_rise_beside_a_loss_that_falls_far_is_a_warning(tmp_path: Path) -> None:
    loss = [2.0 * (1 - 0.8 * i / 200) for i in range(201)]
    report = judged(tmp_path, {"grad_norm": rising(3.0), "loss": loss})
    assert report.verdict == "stable"
    assert [finding.rule for finding in report.findings] == ["GT104"]


def test_a_rise_of_less_beside_a_falling_loss_is_learning(tmp_path: Path) -> None:
    loss = [2.0 * (1 - 0.8 * i / 200) for i in range(201)]
    report = judged(tmp_path, {"grad_norm": rising(0.8), "loss": loss})
    assert report.verdict == "stable"
    assert not report.findings
