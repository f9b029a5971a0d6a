"""Never `stable` beside a run that failed: the loss is a witness, and the whole run counts.

Each kind of run that was judged wrongly once, in several made shapes, and healthy runs that come near them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

import gradtrend
from gradtrend.model.report import RunReport
from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Severity, Verdict
from tests.detect.made_runs import (
    Cells,
    Columns,
    Curve,
    Row,
    along,
    as_float32,
    each,
    errors,
    held,
    ids,
    is_not_sick,
    is_sick,
    is_stable,
    learned,
    made,
    rows_of,
    through,
    told,
    warmed_up,
    with_values,
    write_csv,
    write_json_lines,
    write_tensorboard,
)
from tests.detect.runs import judged

NAN, INF = math.nan, math.inf
EXPLODING, DIVERGING, VANISHING = Verdict.EXPLODING, Verdict.DIVERGING, Verdict.VANISHING

# ---- a learning rate far too high, as the Transformers Trainer logs it: norm, loss, two points before the rise

FAR_TOO_HIGH: dict[str, tuple[Curve, Curve, int]] = {
    "9-points": (
        [0.6, 0.7, 40.0, 152.0, 131.0, 104.0, 92.0, 71.0, 66.0],
        [3.2, 3.1, 52.0, 410.0, 620.0, 310.0, 124.0, 63.0, 47.0],
        10,
    ),
    "30-points": (
        [55.0, 60.0, *through(28, (0, 900.0), (0.2, 16000.0), (1, 5200.0), noise=0.2, seed=1)],
        [6.9, 6.8, *through(28, (0, 60.0), (0.2, 990.0), (1, 81.0), noise=0.1, seed=2)],
        50,
    ),
    "80-points": (
        [0.021, 0.019, *through(78, (0, 0.6), (0.1, 4.1), (0.5, 2.8), (1, 2.2), noise=0.25, seed=3)],
        [1.41, 1.38, *through(78, (0, 30.0), (0.1, 210.0), (1, 19.0), noise=0.1, seed=4)],
        5,
    ),
    "400-points": (
        [1.3, 1.2, *through(398, (0, 30.0), (0.05, 300.0), (0.4, 170.0), (1, 130.0), noise=0.3, seed=5)],
        [10.4, 10.1, *through(398, (0, 90.0), (0.05, 1300.0), (1, 60.0), noise=0.15, seed=6)],
        1,
    ),
}


@pytest.mark.parametrize("with_lr", [True, False], ids=["lr", "no-lr"])
@each(FAR_TOO_HIGH, "run")
def test_a_norm_that_jumped_after_two_points_and_stayed_up_exploded(
    run: tuple[Curve, Curve, int], with_lr: bool
) -> None:
    norm, loss, every = run
    is_sick(judged(made(norm, loss, lr=warmed_up(len(norm), 5.0) if with_lr else None, every=every)), EXPLODING)


@each(FAR_TOO_HIGH, "run")
def test_a_trainer_state_of_a_learning_rate_far_too_high_exploded(
    run: tuple[Curve, Curve, int], tmp_path: Path
) -> None:
    norm, loss, every = run
    rates = warmed_up(len(norm), 5.0)
    history = [
        {"epoch": i / 10, "grad_norm": norm[i], "learning_rate": rates[i], "loss": loss[i], "step": every * (i + 1)}
        for i in range(len(norm))
    ]
    state = {"epoch": 3.0, "global_step": every * len(norm), "logging_steps": every, "log_history": history}
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    is_sick(gradtrend.analyze(tmp_path), EXPLODING)


# ---- the loss rose and came back to its start only; the norm came part of the way

TOO_HIGH: dict[str, RunLog] = {
    "12-points": made(
        [0.9, 0.8, 31.0, 60.0, 47.0, 35.0, 26.0, 20.0, 17.0, 14.0, 12.0, 11.0],
        [3.9, 3.8, 14.0, 22.0, 17.0, 12.0, 9.0, 7.0, 6.0, 5.1, 4.6, 4.3],
        lr=warmed_up(12, 1.0),
        every=10,
    ),
    "25-points-no-lr": made(
        through(25, (0, 0.11), (0.08, 0.12), (0.2, 7.0), (1, 1.4), noise=0.1, seed=1),
        through(25, (0, 2.31), (0.08, 2.3), (0.2, 12.0), (1, 2.55), noise=0.01, seed=2),
        every=100,
    ),
    "100-points": made(
        through(100, (0, 14.0), (0.05, 14.0), (0.15, 900.0), (1, 170.0), noise=0.15, seed=3),
        through(100, (0, 6.2), (0.05, 6.1), (0.15, 31.0), (1, 6.9), noise=0.02, seed=4),
        lr=warmed_up(100, 1.0),
        every=20,
    ),
    "600-points": made(
        through(600, (0, 0.7), (0.02, 0.8), (0.1, 40.0), (1, 8.0), noise=0.2, seed=5),
        through(600, (0, 9.1), (0.02, 8.9), (0.1, 44.0), (1, 9.6), noise=0.02, seed=6),
    ),
}


@each(TOO_HIGH)
def test_a_loss_that_rose_fivefold_and_ends_above_its_start_did_not_settle(log: RunLog) -> None:
    report = judged(log)
    is_sick(report, EXPLODING, DIVERGING)
    assert "GT103" not in ids(report), told(report)


# ---- norm and batch loss for the first steps only, an evaluated loss to the end


def begun(head: int, steps: int, every: int, evaluated: Curve, batch: float, seed: int) -> Columns:
    """Columns of every step: `grad_norm` and `loss` for the first `head`, `train/loss` every `every` to the end."""
    late: list[float | None] = [None] * steps
    late[::every] = evaluated[: len(range(0, steps, every))]
    return {
        "grad_norm": held(head, 0.8, 0.15, seed),
        "loss": learned(head, batch, batch * 0.9, 0.02, seed + 1),
        "train/loss": late,
    }


CUT_SHORT: dict[str, Columns] = {
    "2000-steps": begun(100, 2000, 50, through(40, (0, 4.7), (0.3, 3.9), (0.5, 60), (1, 692), seed=1), 4.8, 1),
    "1500-steps": begun(100, 1500, 10, through(150, (0, 0.69), (0.5, 0.4), (1, 21), noise=0.05, seed=2), 0.7, 2),
    "900-steps": begun(60, 900, 30, through(30, (0, 9.8), (0.4, 6), (0.55, 13), (1, 12), noise=0.03, seed=3), 10, 3),
    "600-steps": begun(40, 600, 50, [2.4, 2.0, 1.9, 1.8, 1.9, 7.5, 31, 44, 52, 61, 70, 75], 2.5, 4),
}
HEALTHY_CUT_SHORT: dict[str, Columns] = {
    "2000-steps": begun(100, 2000, 50, learned(40, 4.7, 1.9), 4.8, 1),
    "1500-steps": begun(100, 1500, 10, learned(150, 0.69, 0.2, 0.05), 0.7, 2),
    "600-steps": begun(40, 600, 50, learned(12, 2.4, 1.1), 2.5, 4),
}


@each(CUT_SHORT, "columns")
def test_an_evaluated_loss_that_diverges_after_the_norm_stopped_is_diverging(columns: Columns, tmp_path: Path) -> None:
    report = gradtrend.analyze(write_json_lines(tmp_path, rows_of(columns)))
    is_sick(report, DIVERGING)
    (norm,) = [series for series in report.series if series.metric == "grad_norm"]
    assert norm.covers is not None
    assert norm.covers < 0.2


@each(CUT_SHORT, "columns")
def test_the_same_as_csv_with_empty_cells_is_diverging(columns: Columns, tmp_path: Path) -> None:
    is_sick(gradtrend.analyze(write_csv(tmp_path, rows_of(columns))), DIVERGING)


@each(CUT_SHORT, "columns")
def test_the_evaluated_loss_is_judged_where_it_is_asked_for(columns: Columns, tmp_path: Path) -> None:
    is_sick(gradtrend.analyze(write_json_lines(tmp_path, rows_of(columns)), loss="train/loss"), DIVERGING)


@pytest.mark.parametrize("write", [write_json_lines, write_csv], ids=["json-lines", "csv"])
@each(HEALTHY_CUT_SHORT, "columns")
def test_a_healthy_run_whose_norm_stops_early_is_told_so_with_the_last_step(
    columns: Columns, write: Callable[[Path, list[Row]], Path], tmp_path: Path
) -> None:
    report = gradtrend.analyze(write(tmp_path, rows_of(columns)))
    is_not_sick(report)
    last = len(columns["grad_norm"]) - 1
    assert any(f.last_step == last or str(last) in f.message for f in report.findings), told(report)
    assert report.verdict is not Verdict.STABLE or (report.confidence or 0) < 0.9, told(report)


# ---- a loss that stays at or above chance over a long run and ends where it began


def at_chance(n: int, classes: int, hump: float, seed: int) -> Curve:
    level = math.log(classes)
    return through(
        n, (0, level * 1.01), (0.3, level * hump), (0.8, level * 1.02), (1, level * 1.012), noise=0.003, seed=seed
    )


AT_CHANCE: dict[str, RunLog] = {
    "172-points": made(held(172, 0.4, 0.2), at_chance(172, 1000, 1.06, 1), every=1000),
    "500-points": made(held(500, 12.0, 0.3), at_chance(500, 10, 1.2, 2), lr=warmed_up(500, 0.1, 25), every=100),
    "1000-points": made(held(1000, 3e-2, 0.1), at_chance(1000, 32000, 1.04, 3), every=20),
    "60-points": made(held(60, 1.1, 0.1), at_chance(60, 100, 1.1, 4), lr=warmed_up(60, 1.0), every=500),
}


@each(AT_CHANCE)
def test_a_loss_that_ends_where_it_began_is_never_without_a_finding(log: RunLog) -> None:
    report = judged(log)
    assert report.verdict in {DIVERGING, Verdict.STABLE}, told(report)
    assert report.verdict is DIVERGING or "GT302" in ids(report), told(report)


# ---- the norm rises by a factor of thirty, the loss doubles, then a gap and one low value


def with_low_end(norm: Curve, loss: Curve, gap: int, low: tuple[float, float], every: int, lr: bool) -> RunLog:
    n = len(norm)
    log = made([*norm, low[0]], [*loss, low[1]], lr=warmed_up(n + 1) if lr else None, every=every)
    steps = [every * i for i in range(n)]
    table = log.table.with_columns(step=log.table["step"].replace({every * n: steps[-1] + gap}))
    return RunLog("run", table, losses=("loss",))


def risen(n: int, level: float, seed: int) -> Curve:
    return through(n, (0, level), (0.3, level * 1.3), (0.7, level * 20), (1, level * 33), noise=0.2, seed=seed)


LOW_END: dict[str, RunLog] = {
    "40-points": with_low_end(
        risen(40, 9e4, 1),
        through(40, (0, 3.4), (0.3, 3.1), (0.7, 6), (1, 7.7), noise=0.02, seed=2),
        4000,
        (1.1e5, 7.2),
        100,
        False,
    ),
    "200-points": with_low_end(
        risen(200, 0.5, 3),
        through(200, (0, 5.1), (0.3, 4.2), (0.7, 9), (1, 11), noise=0.02, seed=4),
        2500,
        (0.6, 10.4),
        10,
        True,
    ),
    "20-points": with_low_end(
        risen(20, 700.0, 5),
        through(20, (0, 1.2), (0.3, 0.9), (0.7, 2.2), (1, 2.9), noise=0.02, seed=6),
        900,
        (2.1e4, 1.1),
        50,
        True,
    ),
    "900-points": with_low_end(
        risen(900, 1.0, 7),
        through(900, (0, 7.0), (0.3, 5), (0.7, 11), (1, 14), noise=0.03, seed=8),
        5000,
        (1.2, 13.0),
        1,
        False,
    ),
}


@each(LOW_END)
def test_one_low_value_after_a_gap_does_not_undo_the_rise(log: RunLog) -> None:
    is_sick(judged(log), EXPLODING, DIVERGING)


# ---- a log without a norm

LOSS_ALONE: dict[str, RunLog] = {
    "12-points": made(None, [2.1, 1.9, 1.8, 1.9, 2.6, 9, 80, 700, 4100, 9000, 14000, 17000], every=10),
    "50-points": made(None, through(50, (0, 2.0), (0.4, 1.5), (1, 23000), noise=0.1, seed=1), every=100),
    "300-points": made(None, through(300, (0, 0.69), (0.6, 0.31), (0.75, 8), (1, 12), noise=0.05, seed=2)),
    "1500-points": made(
        None, through(1500, (0, 11.0), (0.5, 4), (0.6, 13), (1, 12.5), noise=0.02, seed=3), lr=warmed_up(1500, 1e-3, 50)
    ),
    "25-points-from-the-first": made(None, through(25, (0, 3.0), (1, 5200), noise=0.05, seed=4), every=500),
}


@each(LOSS_ALONE)
def test_a_loss_that_diverges_is_diverging_without_a_norm(log: RunLog) -> None:
    is_sick(judged(log), DIVERGING)


# ---- the last row is far up

LAST_ROW_UP: dict[str, RunLog] = {
    "16-points": made([*held(16, 8.0, 0.1), 10_400.0], learned(17), every=10),
    "60-points": made([*held(60, 0.3, 0.2, 1), 410.0], learned(61, 9, 5), lr=warmed_up(61), every=50),
    "300-points": made([*held(300, 2e-3, 0.15, 2), 3.1], learned(301, 1.2, 0.6)),
    "1200-points": made([*held(1200, 55.0, 0.3, 3), 9e4], learned(1201, 7, 2.2), lr=warmed_up(1201, 1e-3, 30)),
}


@each(LAST_ROW_UP)
def test_a_last_row_far_up_is_a_warning_and_never_came_back(log: RunLog) -> None:
    report = judged(log)
    assert report.verdict in {Verdict.STABLE, Verdict.UNDETERMINED}, told(report)
    assert not errors(report), told(report)
    last = log.table["step"].max()
    about = [f for f in report.findings if f.severity is Severity.WARNING and f.last_step == last]
    assert about, told(report)
    assert "GT105" not in ids(report), told(report)
    assert not any(re.search("(?<!never )(?<!not )came back", f.message) for f in report.findings)


# ---- a deep network whose first layers get nothing


def by_depth(n: int, layers: int, ratio: float, top: float, seed: int) -> dict[str, Curve]:
    """Norms that fall by a ratio from the last layer to the first."""
    return {f"layers.{i}.weight": held(n, top * ratio ** (i - layers + 1), 0.25, seed + i) for i in range(layers)}


def total(layers: dict[str, Curve]) -> Curve:
    return [float(value) for value in np.sqrt(np.sum(np.square(list(layers.values())), axis=0))]


def stood(n: int, start: float, level: float, share: float, seed: int) -> Curve:
    """A loss that moved a little at first and then stands."""
    return through(n, (0, start), (share, level), (1, level), noise=0.002, seed=seed)


def deep(n: int, layers: int, ratio: float, top: float, loss: Curve, every: int, with_total: bool) -> RunLog:
    norms = by_depth(n, layers, ratio, top, 10 * layers)
    return made(total(norms) if with_total else None, loss, layers=norms, every=every)


DEEP: dict[str, RunLog] = {
    "10-layers": deep(200, 10, 10.0, 0.4, stood(200, 2.36, 2.303, 0.1, 1), 10, True),
    "6-layers": deep(60, 6, 60.0, 2.0, stood(60, 0.78, 0.693, 0.05, 2), 100, True),
    "13-layers-no-total": deep(400, 13, 6.0, 0.05, stood(400, 4.75, 4.605, 0.08, 3), 1, False),
    "8-layers": deep(1000, 8, 20.0, 0.9, stood(1000, 1.16, 1.099, 0.05, 4), 5, True),
}


@each(DEEP)
def test_layers_that_fall_by_nine_decades_beside_a_loss_that_stands_vanish(log: RunLog) -> None:
    report = judged(log)
    is_sick(report, VANISHING)
    named = {f.layer for f in report.findings if f.severity is Severity.ERROR}
    assert "layers.0.weight" in named, told(report)


# ---- one value of a loss is below zero by rounding


def fell(n: int, level: float, low: float, until: float, seed: int) -> Curve:
    """A norm that falls to a low level and stays there."""
    return through(n, (0, level), (until, low), (1, low), noise=0.2, seed=seed)


def rounded(loss: Curve, at: int, value: float) -> Curve:
    return with_values(loss, at, [value])


ROUNDED: dict[str, RunLog] = {
    "40-points": made(fell(40, 1.0, 1e-8, 0.4, 1), rounded(held(40, 0.69, 0.01), 22, -5e-9), every=10),
    "150-points": made(fell(150, 30.0, 2e-6, 0.5, 2), rounded(held(150, 2.31, 0.01), 3, -1e-8), lr=warmed_up(150)),
    "500-points": made(fell(500, 0.2, 1e-9, 0.3, 3), rounded(held(500, 4.6, 0.02), 400, -2e-7), every=20),
    "1500-points": made(fell(1500, 5.0, 1e-7, 0.6, 4), rounded(held(1500, 1.1, 0.02), 1100, -3e-8)),
}


@each(ROUNDED)
def test_one_negative_value_of_a_loss_that_stands_does_not_hide_vanishing(log: RunLog) -> None:
    is_sick(judged(log), VANISHING)


# ---- few points, and the high level is the longer one

MOSTLY_HIGH: dict[str, RunLog] = {
    "9-points": made(
        [0.9, 1.0, 6.0, 12.5, 13.0, 12.2, 12.9, 13.1, 12.6],
        [0.5, 0.52, 40.0, 300.0, 900.0, 1010.0, 990.0, 1005.0, 1000.0],
        every=100,
    ),
    "10-points": made(
        [210, 230, 190, 1900, 3300, 3900, 3700, 3800, 4000, 4100],
        [0.02, 0.018, 0.019, 2.0, 31.0, 60.0, 74.0, 71.0, 77.0, 80.0],
        lr=warmed_up(10, 0.5),
        every=5,
    ),
    "14-points": made(
        [*held(2, 0.03, 0.05), *through(12, (0, 0.2), (0.2, 0.5), (1, 0.55), noise=0.05, seed=1)],
        [3.0, 2.9, *through(12, (0, 90.0), (0.3, 4800.0), (1, 6200.0), noise=0.05, seed=2)],
        every=10,
    ),
    "20-points": made(
        [*held(3, 7.0, 0.1), *through(17, (0, 50.0), (0.1, 130.0), (1, 140.0), noise=0.08, seed=3)],
        [1.4, 1.3, 1.3, *through(17, (0, 25.0), (0.2, 2300.0), (1, 2900.0), noise=0.1, seed=4)],
        every=1000,
    ),
}


@each(MOSTLY_HIGH)
def test_a_norm_that_rose_tenfold_at_the_very_start_and_stayed_exploded(log: RunLog) -> None:
    is_sick(judged(log), EXPLODING)


# ---- an early hump is no excuse for a rise at the end


def hump_then_rise(n: int, level: float, hump: float, end: float, seed: int) -> Curve:
    quiet = [(0.0, level), (0.18, level), (0.21, level * hump), (0.25, level), (0.82, level), (0.93, level * end)]
    return through(n, *quiet, (1, level * end * 1.1), noise=0.12, seed=seed)


def fell_then_rose(n: int, start: float, best: float, end: float, seed: int) -> Curve:
    return through(n, (0, start), (0.5, best), (0.82, best), (1, end), noise=0.02, seed=seed)


HUMP_BEFORE: dict[str, RunLog] = {
    "120-points": made(hump_then_rise(120, 0.7, 18, 20, 1), fell_then_rose(120, 3.0, 1.8, 10.5, 2), every=10),
    "300-points": made(
        hump_then_rise(300, 40, 25, 22, 3), fell_then_rose(300, 6, 4, 24, 4), lr=warmed_up(300, 1e-3, 20), every=50
    ),
    "800-points": made(hump_then_rise(800, 2e-3, 21, 24, 5), fell_then_rose(800, 1.1, 0.7, 4.1, 6)),
    "2000-points": made(hump_then_rise(2000, 1.5, 15, 30, 7), fell_then_rose(2000, 9, 5, 31, 8), lr=warmed_up(2000)),
}


@each(HUMP_BEFORE)
def test_a_rise_at_the_end_exploded_whatever_hump_came_back_before(log: RunLog) -> None:
    is_sick(judged(log), EXPLODING)


# ---- zeros after values, beside a loss that stands

DEAD: dict[str, RunLog] = {
    "80-points": made([*through(40, (0, 17.0), (0.2, 9.0), (1, 1e-23)), *[0.0] * 40], stood(80, 2.5, 2.31, 0.05, 1)),
    "50-points": made([0.003, *[0.0] * 49], held(50, 2.303, 0.003), every=100),
    "400-points": made(
        [*through(150, (0, 3.0), (1, 1e-30), noise=0.3, seed=2), *[0.0] * 250],
        stood(400, 0.8, 0.693, 0.03, 3),
        lr=warmed_up(400, 1.0),
        every=20,
    ),
    "20-points": made([0.4, 0.02, 1e-5, *[0.0] * 17], held(20, 4.605, 0.002), every=10),
    "1000-points": made(
        [*held(5, 0.7, 0.3), *through(45, (0, 0.1), (1, 1e-12)), *[0.0] * 950], held(1000, 1.61, 0.004)
    ),
}


@each(DEAD)
def test_a_norm_that_falls_to_zero_for_good_beside_a_loss_that_stands_vanishes(log: RunLog) -> None:
    report = judged(log)
    is_sick(report, VANISHING)
    assert "GT102" in errors(report), told(report)


# ---- a loss that hardly moved

HARDLY_MOVED: dict[str, RunLog] = {
    "50-epochs": made(held(50, 0.6, 0.1), along(50, (0, 1.107), (1, 1.090), noise=0.002), every=1),
    "40-epochs": made(held(40, 4.0, 0.15), along(40, (0, 4.61), (1, 4.57), noise=0.01), lr=warmed_up(40), every=391),
    "90-epochs": made(held(90, 0.02, 0.2), along(90, (0, 0.6931), (1, 0.6880), noise=0.001), every=1),
    "150-points": made(held(150, 110.0, 0.1), along(150, (0, 7.05), (1, 6.97), noise=0.02), every=10),
}


@each(HARDLY_MOVED)
def test_a_loss_that_hardly_moved_is_a_plateau_beside_a_stable_norm(log: RunLog) -> None:
    report = judged(log)
    is_stable(report)
    assert "GT302" in ids(report), told(report)


# ---- a norm of each tensor has no absolute limit


def tensors(n: int, *levels: float, noise: float = 0.4) -> dict[str, Curve]:
    return {f"block.{i}.weight": held(n, level, noise, i) for i, level in enumerate(levels)}


SMALL_TENSORS: dict[str, RunLog] = {
    "three": made(None, held(300, 2.31, 0.01), layers=tensors(300, 8e-4, 7e-4, 1e-3)),
    "four": made(None, held(120, 0.695, 0.01), layers=tensors(120, 8e-4, 5e-4, 2e-3, 9e-4), every=50),
    "two": made(None, held(60, 4.62, 0.01), layers=tensors(60, 6e-4, 3e-4), lr=warmed_up(60), every=10),
    "six": made(None, held(1000, 1.1, 0.02), layers=tensors(1000, 7e-4, 1e-3, 4e-4, 8e-4, 6e-4, 2e-3, noise=0.6)),
}


@each(SMALL_TENSORS)
def test_small_level_noisy_norms_of_tensors_beside_a_flat_loss_are_stable(log: RunLog) -> None:
    report = judged(log)
    is_stable(report)
    assert "GT302" in ids(report), told(report)


# ---- a learning rate that rises all run is no warm-up


def rising_lr(n: int, peak: float) -> Curve:
    return [peak * (i + 1) / n for i in range(n)]


def spiked_late(n: int, level: float, spike: Sequence[float], seed: int) -> Curve:
    return with_values(held(n, level, 0.15, seed), int(0.85 * n), spike)


SPIKED_BUT_FINE: dict[str, RunLog] = {
    "200-points": made(spiked_late(200, 0.9, [1e12], 1), learned(200), lr=rising_lr(200, 1e-3), every=10),
    "1000-points": made(spiked_late(1000, 30, [4e9, 1e12, 7e7], 2), learned(1000, 9, 3), lr=rising_lr(1000, 0.1)),
    "500-points": made(
        spiked_late(500, 2e-2, [3e10, 2e5], 3),
        with_values(learned(500, 2.3, 0.9), 425, [40.0, 9.0, 2.0]),
        lr=rising_lr(500, 3.0),
        every=100,
    ),
}
SPIKED_AND_LOST: dict[str, RunLog] = {
    "200-points": made(
        spiked_late(200, 0.9, [1e12], 1),
        through(200, (0, 4), (0.5, 2), (0.845, 1.6), (0.85, 4.4), (1, 4.3), noise=0.02, seed=4),
        lr=rising_lr(200, 1e-3),
        every=10,
    ),
    "600-points": made(
        spiked_late(600, 12, [8e11, 1e13], 5),
        through(600, (0, 7), (0.5, 3), (0.848, 2.5), (0.852, 90), (1, 70), noise=0.05, seed=6),
        lr=rising_lr(600, 0.3),
    ),
    "80-points": made(
        spiked_late(80, 5e-2, [1e12], 7),
        through(80, (0, 0.7), (0.5, 0.3), (0.84, 0.2), (0.86, 0.75), (1, 0.72), noise=0.02, seed=8),
        lr=rising_lr(80, 1.0),
        every=500,
    ),
}


@each(SPIKED_BUT_FINE)
def test_a_spike_late_under_a_rising_learning_rate_that_the_loss_survived_is_no_warmup(log: RunLog) -> None:
    report = judged(log)
    is_stable(report)
    assert "GT103" not in ids(report), told(report)


@each(SPIKED_AND_LOST)
def test_a_spike_late_under_a_rising_learning_rate_that_the_loss_did_not_survive_is_diverging(log: RunLog) -> None:
    report = judged(log)
    is_sick(report, DIVERGING, EXPLODING)
    assert "GT103" not in ids(report), told(report)


# ---- a wide ragged hump in warm-up


def ragged(n: int, level: float, first: int, points: int, top: float, seed: int) -> Curve:
    """A hump whose points jump between a few times the level and the top."""
    rng = np.random.default_rng(seed)
    shape = np.sin(np.linspace(0.15, np.pi - 0.15, points)) * rng.uniform(0.35, 1.0, points)
    hump = level * (1 + (top - 1) * shape / shape.max())
    return with_values(held(n, level, 0.12, seed), first, [float(value) for value in hump])


WIDE_HUMP: dict[str, tuple[Curve, Curve, int]] = {
    "600-points": (ragged(600, 1.0, 15, 30, 48, 1), learned(600, 8, 3), 60),
    "2000-points": (ragged(2000, 0.4, 30, 55, 35, 2), learned(2000, 10.8, 3.2), 120),
    "400-points": (ragged(400, 90.0, 10, 22, 60, 3), learned(400, 2.3, 0.8), 40),
    "1000-points": (ragged(1000, 3e-3, 20, 40, 25, 4), learned(1000, 6.9, 2.1), 70),
}


@each(WIDE_HUMP, "run")
def test_a_wide_ragged_hump_in_warmup_that_settles_is_a_warmup_spike(run: tuple[Curve, Curve, int]) -> None:
    norm, loss, warm = run
    report = judged(made(norm, loss, lr=warmed_up(len(norm), 1e-3, warm)))
    assert report.verdict is Verdict.WARMUP_SPIKE, told(report)
    assert "GT103" in ids(report), told(report)
    is_not_sick(report)


@each(WIDE_HUMP, "run")
def test_a_wide_ragged_hump_early_without_a_learning_rate_is_told(run: tuple[Curve, Curve, int]) -> None:
    norm, loss, _ = run
    report = judged(made(norm, loss))
    is_not_sick(report)
    assert ids(report) & {"GT103", "GT105", "GT107"}, told(report)


# ---- reading: twin columns, placeholders, nulls, formats


def skipped_once(n: int, at: int, seed: int) -> tuple[Curve, Curve]:
    """A step's own norm with one skipped step, and its average, which is inf from there on."""
    own = with_values(held(n, 0.8, 0.15, seed), at, [INF])
    return own, [float(np.mean(own[: i + 1])) for i in range(n)]


@pytest.mark.parametrize("write", [write_json_lines, write_csv], ids=["json-lines", "csv"])
@pytest.mark.parametrize(("n", "at"), [(60, 7), (300, 40), (1000, 500), (25, 12)])
def test_of_twin_columns_the_value_of_the_step_is_judged(
    n: int, at: int, write: Callable[[Path, list[Row]], Path], tmp_path: Path
) -> None:
    own, average = skipped_once(n, at, n)
    columns = {"loss": learned(n), "grad_norm_avg": average, "grad_norm_val": own}
    report = gradtrend.analyze(write(tmp_path, rows_of(columns, every=10)))
    is_stable(report)
    assert "GT201" not in ids(report)
    judged_norms = [series.metric for series in report.series if series.trend == Verdict.STABLE.value]
    assert any("grad_norm_val" in metric for metric in judged_norms), told(report)


def bar(i: int, of: int, loss: float, norm: float | None, step: int) -> str:
    own = "" if norm is None else f", grad_norm={norm:.3f}"
    return (
        f"Epoch 0: : {100 * i // of:3d}%|██▌       | {i}/{of} [00:{i % 60:02d}<09:12, 1.71s/it, loss=nan, v_num=x1a, "
        f"reduced_train_loss={loss:.3f}, global_step={step}.0{own}]"
    )


@pytest.mark.parametrize(
    ("n", "every", "end"), [(40, 1, "\r"), (120, 5, "\r"), (400, 10, "\n"), (16, 25, "\n")], ids=str
)
def test_a_placeholder_in_a_progress_bar_is_no_collapse(n: int, every: int, end: str, tmp_path: Path) -> None:
    losses, norms = learned(n, 10.9, 3.9, 0.02, n), held(n, 1.4, 0.15, n)
    bars = [bar(i + 1, n, losses[i], norms[i], every * i) for i in range(n)]
    (tmp_path / "train.log").write_text(end.join(bars) + "\n")
    is_stable(gradtrend.analyze(tmp_path))


@pytest.mark.parametrize(("n", "every"), [(40, 1), (200, 10)])
def test_a_placeholder_in_a_progress_bar_without_a_norm_is_no_collapse(n: int, every: int, tmp_path: Path) -> None:
    losses = learned(n, 10.9, 3.9, 0.02, n)
    (tmp_path / "train.log").write_text("\r".join(bar(i + 1, n, losses[i], None, every * i) for i in range(n)) + "\n")
    is_not_sick(gradtrend.analyze(tmp_path))


def with_evaluations(n: int, every: int, evaluation: Callable[[int], Row], seed: int) -> list[Row]:
    """Rows of a healthy training with a row of an evaluation after every so many."""
    train = rows_of({"loss": learned(n, seed=seed), "grad_norm": held(n, 0.7, 0.1, seed), "lr": warmed_up(n)}, 10)
    rows: list[Row] = []
    for i, row in enumerate(train, 1):
        rows.append(row)
        if i % every == 0:
            rows.append({"step": row["step"]} | evaluation(i))
    return rows


NULLS: dict[str, list[Row]] = {
    "train-values-null": with_evaluations(
        200, 20, lambda i: {"eval_loss": 2 + 1 / i, "loss": None, "grad_norm": None, "lr": None}, 1
    ),
    "eval-loss-null": with_evaluations(60, 10, lambda i: {"eval_loss": None, "eval_accuracy": 0.3 + i / 200}, 2),
    "norm-null": with_evaluations(
        800, 100, lambda i: {"eval_loss": 2.1, "eval_accuracy": i / 900, "grad_norm": None}, 3
    ),
    "last-row-null": with_evaluations(30, 30, lambda i: {"eval_loss": 2.0, "loss": None, "grad_norm": None}, 4),
}


@each(NULLS, "rows")
def test_null_in_a_row_of_an_evaluation_is_a_missing_value(rows: list[Row], tmp_path: Path) -> None:
    report = gradtrend.analyze(write_json_lines(tmp_path, rows))
    is_stable(report)
    assert report.nonfinite is None
    assert not ids(report) & {"GT201", "GT202", "GT203", "GT205"}, told(report)


def collapsed(n: int, at: int, evaluated_every: int, seed: int) -> list[Row]:
    """NaN in loss and norm from a row on; the evaluations stand in rows of their own, so no row has every column."""
    train = rows_of(
        {
            "loss": [*learned(n, seed=seed)[:at], *[NAN] * (n - at)],
            "grad_norm": [*held(n, 1.2, 0.1, seed)[:at], *[NAN] * (n - at)],
            "lr": warmed_up(n),
            "samples_per_second": held(n, 900, 0.02, seed),
        },
        10,
    )
    rows: list[Row] = []
    for i, row in enumerate(train):
        rows.append(row)
        if i % evaluated_every == evaluated_every - 1 and i < at:
            rows.append({"step": row["step"], "valid/accuracy": i / n, "valid/seconds": 3.0 + i % 3})
    return rows


def fewer_columns(rows: list[Row]) -> list[Row]:
    """The rows with step, loss and norm alone."""
    kept = [{k: v for k, v in row.items() if k in {"step", "loss", "grad_norm"}} for row in rows]
    return [row for row in kept if len(row) > 1]


SPARSE_AND_FEW: dict[str, tuple[list[Row], Verdict]] = {
    "nan-60-of-200": (collapsed(200, 140, 20, 1), Verdict.NAN_COLLAPSE),
    "nan-10-of-40": (collapsed(40, 30, 7, 2), Verdict.NAN_COLLAPSE),
    "nan-500-of-1000": (collapsed(1000, 500, 100, 3), Verdict.NAN_COLLAPSE),
    "healthy-200": (collapsed(200, 200, 20, 4), Verdict.STABLE),
    "healthy-30": (collapsed(30, 30, 5, 5), Verdict.STABLE),
}


@each(SPARSE_AND_FEW, "run")
def test_a_csv_of_pandas_and_json_lines_with_fewer_columns_say_the_same(
    run: tuple[list[Row], Verdict], tmp_path: Path
) -> None:
    rows, verdict = run
    table = gradtrend.analyze(write_csv(tmp_path / "csv", rows, nan=""))
    lines = gradtrend.analyze(write_json_lines(tmp_path / "json", fewer_columns(rows)))
    assert (table.verdict, lines.verdict) == (verdict, verdict), f"{told(table)} / {told(lines)}"
    assert errors(table) == errors(lines)


# ---- near misses: healthy runs


def spiked(n: int, at: float, spike: Sequence[float], seed: int) -> RunLog:
    loss = learned(n, 4, 1.8, 0.02, seed)
    first = int(at * n)
    loss = with_values(loss, first, [loss[first] * factor for factor in spike])
    norm = held(n, 0.8, 0.15, seed)
    return made(with_values(norm, first, [norm[first] * factor * factor for factor in spike]), loss, lr=warmed_up(n))


def cyclic(n: int, cycles: int, start: float, end: float, rise: float, seed: int) -> RunLog:
    """A triangular learning rate; the loss follows it by `rise`."""
    phase = np.abs((np.linspace(0, cycles, n) % 1) * 2 - 1)
    up = 1 - phase
    loss = np.array(learned(n, start, end, 0.01, seed)) * (1 + rise * up)
    norm = np.array(held(n, 1.0, 0.1, seed)) * (1 + 0.3 * up)
    return made([*map(float, norm)], [*map(float, loss)], lr=[*map(float, 1e-4 + 1e-3 * up)], every=5)


def contrastive(n: int, start: float, top: float, end: float, seed: int) -> RunLog:
    loss = through(n, (0, start), (0.02, top), (0.3, (top + end) / 2), (1, end), noise=0.01, seed=seed)
    return made(held(n, 2.0, 0.15, seed), loss, lr=warmed_up(n, 1e-3, n // 20))


def creeping(n: int, seed: int) -> RunLog:
    loss = through(n, (0, 11.0), (0.15, 7), (0.6, 4.0), (1, 4.4), noise=0.01, seed=seed)
    return made(held(n, 0.9, 0.15, seed), loss, lr=warmed_up(n, 1e-3, n // 10), every=50)


def flat_low(n: int, level: float, seed: int, lr: bool) -> RunLog:
    return made(held(n, 1.6, 0.3, seed), held(n, level, 0.15, seed + 1), lr=warmed_up(n, 2e-5) if lr else None)


def heavy_tailed(n: int, shape: float, seed: int) -> RunLog:
    tails = 1 + np.random.default_rng(seed).pareto(shape, n)
    return made([float(0.3 * value) for value in tails], learned(n, 3, 1.9, 0.05, seed), every=10)


def scaled_fp16(n: int, first: int, later: int, seed: int) -> RunLog:
    """Overflows in the first steps and every so many later, each of them skipped with the scale halved."""
    skipped = {*range(first), *range(later, n, later)}
    norm = [INF if i in skipped else value for i, value in enumerate(held(n, 0.8, 0.15, seed))]
    scale, scales = 2.0**16, []
    for i in range(n):
        scale = scale / 2 if i in skipped else scale * 2 if i % later == later - 1 else scale
        scales.append(scale)
    return made(norm, learned(n, 5, 2, 0.02, seed), loss_scale=scales)


def short(n: int, start: float, end: float, seed: int, lr: bool) -> RunLog:
    return made(held(n, 1.1, 0.15, seed), learned(n, start, end, 0.02, seed), lr=warmed_up(n) if lr else None, every=10)


def decayed(n: int, start: float, factor: float, seed: int) -> RunLog:
    loss = through(n, (0, start), (0.7, start / factor**0.8), (1, start / factor), noise=0.05, seed=seed)
    norm = through(n, (0, 5.0), (0.7, 5.0 / factor**0.6), (1, 5.0 / factor**0.8), noise=0.15, seed=seed + 1)
    return made(norm, loss, every=10)


def log_density(n: int, *anchors: tuple[float, float], noise: float, seed: int) -> RunLog:
    return made(held(n, 14.0, 0.2, seed), along(n, *anchors, noise=noise, seed=seed), lr=warmed_up(n))


def curriculum(n: int, start: float, half: float, end: float, seed: int) -> RunLog:
    """The task is harder from half of the run on."""
    loss = through(n, (0, start), (0.3, half * 1.1), (0.499, half), (0.5, half * 1.3), (1, end), noise=0.02, seed=seed)
    return made(held(n, 0.8, 0.15, seed), loss, every=20)


HEALTHY: dict[str, RunLog] = {
    "spike-in-the-middle": spiked(400, 0.5, [2, 8, 6, 4, 2.5, 1.5], 1),
    "spike-at-90-percent": spiked(1000, 0.9, [3, 12, 9, 6, 4, 3, 2, 1.5], 2),
    "spike-in-60-points": spiked(60, 0.4, [5, 3], 3),
    "spikes-of-one-row": spiked(200, 0.7, [30], 4),
    "cyclic-15-percent": cyclic(500, 5, 2.3, 0.6, 0.15, 5),
    "cyclic-20-percent": cyclic(1500, 8, 6.0, 2.5, 0.2, 6),
    "cyclic-10-percent": cyclic(120, 3, 1.2, 0.7, 0.1, 7),
    "contrastive-1000": contrastive(1000, 0.5, 9, 6, 8),
    "contrastive-2000": contrastive(2000, 0.5, 9, 6.2, 9),
    "contrastive-500": contrastive(500, 0.7, 8.3, 5.1, 10),
    "dino-200": creeping(200, 11),
    "dino-1000": creeping(1000, 12),
    "dino-60": creeping(60, 13),
    "fine-tuning-100": flat_low(100, 0.35, 14, True),
    "fine-tuning-300": flat_low(300, 0.12, 15, True),
    "fine-tuning-1000": flat_low(1000, 0.8, 16, False),
    "fine-tuning-30": flat_low(30, 0.5, 17, False),
    "heavy-tails-1.5": heavy_tailed(300, 1.5, 18),
    "heavy-tails-1.2": heavy_tailed(2000, 1.2, 19),
    "heavy-tails-2": heavy_tailed(80, 2.0, 20),
    "fp16-300": scaled_fp16(300, 4, 100, 21),
    "fp16-2000": scaled_fp16(2000, 7, 400, 22),
    "fp16-60": scaled_fp16(60, 3, 25, 23),
    "8-points": short(8, 4.0, 2.9, 24, False),
    "10-points": short(10, 0.69, 0.4, 25, True),
    "12-points": short(12, 9.0, 7.1, 26, False),
    "16-points": short(16, 2.3, 1.1, 27, True),
    "20-points": short(20, 6.9, 5.0, 28, False),
    "decay-of-the-loss-100": decayed(100, 80.0, 100, 29),
    "decay-of-the-loss-600": decayed(600, 0.7, 100, 30),
    "decay-of-the-loss-2000": decayed(2000, 3.0, 300, 31),
    "log-density-400": log_density(400, (0, -1), (0.3, -50), (1, -80), noise=1.5, seed=32),
    "log-density-1000": log_density(1000, (0, -110), (0.2, -2000), (1, -3100), noise=40, seed=33),
    "log-density-through-zero": log_density(300, (0, 5), (0.2, -90), (1, -210), noise=4, seed=34),
    "log-density-25": log_density(25, (0, -0.4), (0.4, -1.4), (1, -1.9), noise=0.04, seed=35),
    "curriculum-400": curriculum(400, 4.0, 2.0, 2.1, 36),
    "curriculum-1000": curriculum(1000, 6.0, 1.5, 1.7, 37),
    "curriculum-80": curriculum(80, 9.0, 4.0, 4.3, 38),
}


@each(HEALTHY)
def test_a_healthy_run_that_comes_near_a_sick_one_has_no_error(log: RunLog) -> None:
    report = judged(log)
    is_not_sick(report)
    assert "GT309" not in ids(report)


def gan(n: int, d: tuple[float, float], g: tuple[float, float], seed: int) -> Columns:
    """The generator's loss rises in health."""
    return {
        "d_loss": through(n, (0, d[0]), (0.2, d[1]), (1, d[1]), noise=0.25, seed=seed),
        "g_loss": through(n, (0, g[0]), (0.3, (g[0] * g[1]) ** 0.5), (1, g[1]), noise=0.3, seed=seed + 1),
        "grad_norm": held(n, 2.0, 0.5, seed + 2),
    }


def wasserstein(n: int, seed: int) -> Columns:
    """A critic's loss goes far below zero and comes back toward it; the generator's drifts through zero."""
    return {
        "critic_loss": along(n, (0, 0), (0.1, -40), (1, -6), noise=2, seed=seed),
        "generator_loss": along(n, (0, -3), (0.4, 9), (1, 22), noise=3, seed=seed + 1),
        "critic/grad_norm": held(n, 6.0, 0.4, seed + 2),
        "generator/grad_norm": held(n, 0.5, 0.4, seed + 3),
    }


def reinforced(n: int, reward: float, value: float, seed: int) -> Columns:
    """Rewards rise, and with them what the value function has to explain."""
    return {
        "rollout/ep_rew_mean": along(
            n, (0, reward * 0.05), (0.6, reward * 0.8), (1, reward), noise=reward * 0.02, seed=seed
        ),
        "train/value_loss": through(n, (0, value * 0.02), (0.5, value), (1, value * 0.9), noise=0.3, seed=seed + 1),
        "train/policy_gradient_loss": along(n, (0, -0.012), (1, -0.003), noise=0.008, seed=seed + 2),
        "train/entropy_loss": along(n, (0, -1.38), (1, -0.4), noise=0.02, seed=seed + 3),
        "train/grad_norm": held(n, 0.7, 0.4, seed + 4),
    }


def with_total(columns: Columns) -> Columns:
    """With the loss of the whole, of which the value's is the largest part."""
    value, policy = columns["train/value_loss"], columns["train/policy_gradient_loss"]
    return {**columns, "train/loss": [0.5 * (v or 0) + (p or 0) for v, p in zip(value, policy, strict=True)]}


PLAYERS: dict[str, Columns] = {
    "gan-500": gan(500, (1.38, 0.5), (0.7, 3.5), 1),
    "gan-2000": gan(2000, (1.4, 0.25), (0.8, 6.0), 2),
    "gan-60": gan(60, (1.3, 0.7), (0.75, 2.4), 3),
    "wasserstein-600": wasserstein(600, 4),
    "wasserstein-150": wasserstein(150, 5),
    "rl-100": reinforced(100, 200, 30, 6),
    "rl-1000": reinforced(1000, 3000, 900, 7),
    "rl-400-of-a-whole": with_total(reinforced(400, 21, 0.4, 8)),
    "rl-120-of-a-whole": with_total(reinforced(120, 500, 60, 9)),
}


@each(PLAYERS, "columns")
def test_players_whose_loss_rises_in_health_have_no_error(columns: Columns, tmp_path: Path) -> None:
    report = gradtrend.analyze(write_json_lines(tmp_path, rows_of(columns, every=10)))
    is_not_sick(report)
    assert "GT309" not in ids(report)


# ---- properties

Family = Callable[[int, int], tuple[Curve, Curve]]
FAMILIES: dict[str, Family] = {
    "learns": lambda n, seed: (held(n, 0.8, 0.15, seed), learned(n, 4, 2, 0.02, seed)),
    "norm-decays": lambda n, seed: (
        through(n, (0, 5), (1, 0.5), noise=0.15, seed=seed),
        through(n, (0, 3), (1, 0.1), noise=0.05, seed=seed + 1),
    ),
    "noisy": lambda n, seed: (held(n, 30, 0.5, seed), learned(n, 9, 5, 0.06, seed)),
    "slow": lambda n, seed: (held(n, 2e-2, 0.1, seed), along(n, (0, 7), (1, 5.5), noise=0.04, seed=seed)),
}
families = st.sampled_from(list(FAMILIES.values()))
seeds = st.integers(0, 10_000)
steadily = settings(max_examples=25, deadline=None, derandomize=True, phases=[Phase.generate, Phase.shrink])


@steadily
@given(families, st.integers(80, 800), st.floats(0.05, 0.7), seeds)
def test_cutting_the_norm_short_never_keeps_stable_at_its_confidence(
    family: Family, n: int, share: float, seed: int
) -> None:
    norm, loss = family(n, seed)
    whole = judged(made(norm, loss))
    assume(whole.verdict is Verdict.STABLE)
    kept = max(8, int(share * n))
    cut = judged(made(norm[:kept], loss))
    is_not_sick(cut)
    lower = (cut.confidence or 0.0) < (whole.confidence or 0.0)
    assert cut.verdict is not Verdict.STABLE or lower, told(cut)


@steadily
@given(families, st.integers(80, 800), st.floats(0.05, 0.7), seeds)
def test_a_norm_cut_short_is_a_finding_with_its_last_step(family: Family, n: int, share: float, seed: int) -> None:
    norm, loss = family(n, seed)
    kept = max(8, int(share * n))
    cut = judged(made(norm[:kept], loss))
    new = [f for f in cut.findings if f.rule not in ids(judged(made(norm, loss)))]
    assert any(f.last_step == kept - 1 or str(kept - 1) in f.message for f in new), told(cut)
    (covers,) = [series.covers for series in cut.series if series.role == "grad_norm"]
    assert covers == pytest.approx(kept / n, abs=0.03)


@steadily
@given(families, st.integers(12, 700), st.integers(1, 500), seeds)
def test_a_healthy_tail_keeps_a_healthy_run_healthy(family: Family, n: int, more: int, seed: int) -> None:
    norm, loss = family(n, seed)
    is_not_sick(judged(made(norm, loss)))
    level = math.exp(float(np.mean(np.log(norm[-8:]))))
    end = math.exp(float(np.mean(np.log(loss[-8:]))))
    tail = held(more, level, 0.15, seed + 1)
    is_not_sick(judged(made(norm + tail, loss + held(more, end, 0.02, seed + 2))))


LENGTH = 300
SICK: dict[str, Columns] = {
    "exploding": {
        "grad_norm": through(LENGTH, (0, 1), (0.6, 1.1), (1, 4e4), noise=0.15, seed=1),
        "loss": through(LENGTH, (0, 4), (0.6, 2), (1, 30), noise=0.02, seed=2),
    },
    "nan-collapse": {
        "grad_norm": [*held(240, 0.8, 0.15), *[NAN] * 60],
        "loss": [*learned(240), *[NAN] * 60],
    },
    "masked": {"grad_norm": [*held(240, 0.8, 0.15), *[NAN] * 60], "loss": [*learned(240), *[0.0] * 60]},
    "diverging from below zero": {
        "grad_norm": held(LENGTH, 0.5, 0.15, 13),
        "loss": along(LENGTH, (0, 2), (0.4, -3), (0.6, -3.1), (0.65, 40), (1, 44), noise=0.1, seed=14),
    },
    "diverging from exactly zero": {
        "grad_norm": held(LENGTH, 0.5, 0.15, 15),
        "loss": [
            max(0.0, v) for v in along(LENGTH, (0, 4), (0.3, 0), (0.6, 0), (0.65, 60), (1, 66), noise=0.1, seed=16)
        ],
    },
    "diverging": {
        "grad_norm": held(LENGTH, 0.5, 0.15, 3),
        "loss": through(LENGTH, (0, 4), (0.5, 2), (0.6, 9), (1, 8.5), noise=0.02, seed=4),
    },
    "diverging-without-a-norm": {"loss": through(LENGTH, (0, 2), (0.4, 1.2), (1, 900), noise=0.05, seed=5)},
    "vanishing": {"grad_norm": fell(LENGTH, 1.0, 1e-8, 0.4, 6), "loss": held(LENGTH, 2.303, 0.004, 7)},
    "zeros": {
        "grad_norm": [*through(60, (0, 0.5), (1, 1e-12)), *[0.0] * 240],
        "loss": held(LENGTH, 0.693, 0.004, 8),
    },
}
falling_in_rows: Cells = [value if i % 20 == 19 else None for i, value in enumerate(learned(LENGTH, 3.9, 2.1))]
ADDED: dict[str, Columns] = {
    "accuracy": {"train/accuracy": along(LENGTH, (0, 0.1), (1, 0.7), noise=0.01)},
    "throughput": {"tokens_per_second": held(LENGTH, 2e5, 0.02)},
    "learning-rate": {"lr": warmed_up(LENGTH, 1e-3, 15)},
    "another-norm": {"critic/grad_norm": held(LENGTH, 3.0, 0.2, 11)},
    "layers": {f"grad_norm/layer{i}.weight": held(LENGTH, 0.3, 0.2, 12 + i) for i in range(2)},
    "weight-norm": {"param_norm": through(LENGTH, (0, 40), (1, 55), noise=0.002)},
    "loss-scale": {"loss_scale": [65536.0] * LENGTH},
    "term-of-the-loss": {"aux_loss": learned(LENGTH, 0.5, 0.1)},
    "validation-loss": {"val_loss": falling_in_rows},
    "evaluated-loss": {"train/loss": falling_in_rows},
}


@each(ADDED, "more")
@each(SICK, "columns")
def test_adding_a_metric_never_removes_an_error(columns: Columns, more: Columns, tmp_path: Path) -> None:
    alone = gradtrend.analyze(write_json_lines(tmp_path / "alone", rows_of(columns)))
    beside = gradtrend.analyze(write_json_lines(tmp_path / "beside", rows_of({**columns, **more})))
    assert errors(alone), told(alone)
    assert errors(alone) <= errors(beside), f"alone: {told(alone)}; beside it: {told(beside)}"


def essence(report: RunReport) -> tuple[object, ...]:
    """What must not depend on the format."""
    found = [(f.rule, f.severity, f.metric, f.layer, f.first_step, f.last_step) for f in report.findings]
    tie = report.nonfinite and (report.nonfinite.grad_first_step, report.nonfinite.loss_first_step)
    return report.verdict, tie, sorted(found, key=str)


FORMATS: dict[str, Columns] = {
    **SICK,
    "healthy": {"grad_norm": held(LENGTH, 0.8, 0.15, 21), "loss": learned(LENGTH), "lr": warmed_up(LENGTH, 1e-3, 15)},
    "short": {"grad_norm": held(12, 30.0, 0.15, 22), "loss": learned(12, 9, 6)},
    "layers": {**by_depth(100, 8, 20.0, 0.9, 23), "loss": stood(100, 1.16, 1.099, 0.05, 24)},
    "skipped-steps": {"grad_norm": with_values(held(80, 1, 0.1, 25), 0, [INF, INF]), "loss": learned(80)},
    "norm-cut-short": CUT_SHORT["900-steps"],
    "evaluated": {**SICK["diverging"], "val_loss": falling_in_rows},
}
FORMATS["layers"] = {k if k == "loss" else f"grad_norm/{k}": v for k, v in FORMATS["layers"].items()}


@each(FORMATS, "columns")
def test_csv_json_lines_and_tensorboard_of_the_same_numbers_say_the_same(columns: Columns, tmp_path: Path) -> None:
    pytest.importorskip("torch.utils.tensorboard")
    rows = as_float32(rows_of(columns, every=5))
    lines = gradtrend.analyze(write_json_lines(tmp_path / "lines", rows))
    table = gradtrend.analyze(write_csv(tmp_path / "table", rows))
    events = gradtrend.analyze(write_tensorboard(tmp_path / "events", rows))
    assert essence(table) == essence(lines), f"csv: {told(table)}; json lines: {told(lines)}"
    assert essence(events) == essence(lines), f"tensorboard: {told(events)}; json lines: {told(lines)}"
    assert table.confidence == pytest.approx(lines.confidence)
    assert events.confidence == pytest.approx(lines.confidence)
