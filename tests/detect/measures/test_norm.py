"""Every measure on a curve made by hand for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from gradtrend.detect.measures import MEASURES, failure
from gradtrend.model.capture import Capture
from gradtrend.model.runlog import Note, RunLog, Settings
from tests.detect.runs import curve_of, labelled_runs, log_of

NAN = math.nan
N = 100


def noise(n: int = N, seed: int = 0, sigma: float = 0.02) -> np.ndarray:
    return 10 ** np.random.default_rng(seed).normal(0, sigma, n)


def at(curve: np.ndarray, *changes: tuple[int, float]) -> np.ndarray:
    """The curve with values put in."""
    changed = curve.copy()
    for index, value in changes:
        changed[index] = value
    return changed


ONES = np.ones(N)
STEP = np.where(np.arange(N) < 60, 1.0, 100.0)  # up by two decades at 60
DOWN = 1 / STEP
LOSS = np.linspace(4, 1, N)
HALF = np.where(np.arange(N) < 50, 4.0, 2.0)
WARM = np.minimum(1, np.arange(1, N + 1) / 10)
EXCURSION = np.where((np.arange(N) >= 40) & (np.arange(N) < 70), 30.0, 1.0)
TURNS = np.where(np.arange(N) % 2, 1.5, 1.0)
SCALE = 65536 / 2.0 ** np.minimum(8, np.arange(N) // 5)
LOG16 = Settings(gradient_clip=1.0)
EARLY = at(noise(), (5, 10.0))
LATE = at(noise(), (50, 10.0), (80, 100.0))
SKIPPED = Note("skipped-updates", "nine", measures=(("skipped_updates", 9.0),))
LAYERS = {"a": ONES, "b": ONES / 1000}


@dataclass(frozen=True)
class Row:
    """A run, the metric looked at, and what the measure must say (None: it cannot be taken)."""

    log: RunLog
    expected: float | None
    metric: str | None = "grad_norm"
    near: float = 0.1


def loss_only(loss: np.ndarray) -> RunLog:
    return log_of(loss=loss)


TABLE: dict[str, list[Row]] = {
    "decades_above_baseline": [
        Row(log_of(STEP * noise()), 2), Row(log_of(DOWN * noise()), 0), Row(log_of([NAN]), None),
    ],
    "decades_above_early": [Row(log_of(STEP * noise()), 2), Row(log_of(STEP[::-1] * noise()), -2)],
    "decades_beyond_history": [
        Row(log_of(STEP * noise()), 2), Row(log_of(at(STEP, (20, 90.0), (21, 90.0), (22, 90.0))), 0.05),
    ],
    "rise_over_noise": [Row(log_of(STEP * noise(sigma=0.1)), 20, near=5), Row(log_of(ONES), 0)],
    "loss_gain_since_rise": [
        Row(log_of(STEP, LOSS), 0.5, near=0.1), Row(log_of(STEP, 5 - LOSS), -0.5, near=0.2), Row(log_of(STEP), None),
        Row(log_of(ONES, LOSS), None),
    ],
    "decades_fallen": [Row(log_of(DOWN * noise()), 2), Row(log_of(STEP * noise()), 0)],
    "decades_below_history": [Row(log_of(DOWN * noise()), 2), Row(log_of(EXCURSION), 0)],
    "fall_start": [Row(log_of(DOWN), 0.6, near=0.02)],
    "fall_duration": [Row(log_of(DOWN), 0, near=0.02), Row(log_of(10 ** -np.linspace(0, 4, N)), 0.45, near=0.15)],
    "points_low": [Row(log_of(DOWN), 40), Row(log_of(10 ** -np.linspace(0, 4, N)), 50, near=6)],
    "loss_gain_since_fall": [Row(log_of(DOWN, LOSS), 0.52), Row(log_of(DOWN, ONES), 0), Row(log_of(DOWN), None)],
    "loss_gain_since_low": [Row(log_of(DOWN, HALF), 0), Row(log_of(DOWN, LOSS), 0.5), Row(log_of(DOWN), None)],
    "loss_gain_overall": [
        Row(log_of(ONES, LOSS), 0.74, near=0.02), Row(log_of(ONES, ONES), 0), Row(log_of(ONES, -LOSS), None),
        Row(log_of(ONES), None),
    ],
    "loss_scatter": [Row(log_of(ONES, TURNS), 0.2, near=0.06), Row(log_of(ONES, ONES), 0), Row(log_of(ONES), None)],
    "typical_norm": [Row(log_of(3e-5 * ONES), 3e-5, near=1e-9), Row(log_of([0.0, 2.0]), 2)],
    "early_spike_decades": [Row(log_of(EARLY), 1), Row(log_of(LATE), 0), Row(log_of(ONES), 0)],
    "late_spike_decades": [Row(log_of(LATE), 2), Row(log_of(EARLY), 0)],
    "late_spikes": [Row(log_of(LATE), 2), Row(log_of(EARLY), 0)],
    "collapse_points": [
        Row(log_of([*ONES, NAN, NAN]), 2), Row(log_of(ONES), 0),
        Row(log_of(ONES, captures=(Capture("c", "gradtrend", N),)), 1),
    ],
    "recovered_points": [
        Row(log_of(at(ONES, (5, NAN)), at(ONES, (5, NAN))), 2), Row(log_of([*ONES, NAN, NAN]), 0), Row(log_of(ONES), 0),
    ],
    "late_nonfinite_share": [
        Row(log_of(at(ONES, *((i, NAN) for i in range(20, 40)))), 20 / 85, near=0.02), Row(log_of(ONES), 0),
        Row(log_of([*ONES, NAN, NAN, NAN]), 0), Row(log_of(at(ONES, *((i, NAN) for i in range(10)))), 0),
    ],
    "skipped_updates": [
        Row(log_of(ONES), 0), Row(log_of(ONES, notes=(SKIPPED,)), 9),
        Row(log_of(ONES, loss_scale=SCALE, notes=(SKIPPED,)), 0),
        Row(log_of(ONES, loss_scale=SCALE / 1024, notes=(SKIPPED,)), 9),
    ],
    "masked_share": [
        Row(log_of([*ONES, NAN, NAN], [*LOSS, 0.0, 0.0]), 1), Row(log_of([*ONES, NAN, NAN], [*LOSS, 0.0, 1.0]), 0.5),
        Row(log_of(ONES), 0),
    ],
    "decades_below_other_layers": [
        Row(log_of(ONES, layers=LAYERS), 3, "grad_norm/b"), Row(log_of(ONES, layers=LAYERS), 0, "grad_norm/a"),
        Row(log_of(ONES), None),
    ],
    "decades_end_below_layers": [
        Row(log_of(ONES, layers={"a": ONES, "b": STEP / 1e4}), 2, "grad_norm/b"), Row(log_of(ONES), None),
    ],
    "decades_above_total_rise": [
        Row(log_of(ONES, layers={"a": STEP}), 2, "grad_norm/a"),
        Row(log_of(STEP, layers={"a": STEP}), 0, "grad_norm/a"),
        Row(log_of(layers={"a": STEP}), 2, "grad_norm/a"),
    ],
    "excursion_decades": [Row(log_of(EXCURSION), 1.48), Row(log_of(STEP), 0), Row(log_of(EARLY), 0)],
    "spike_rate": [
        Row(log_of(at(noise(1200), *((i, 50.0) for i in (150, 400, 950)))), 3 / 1199, near=0.0005),
        Row(log_of(noise(1200)), 0), Row(log_of(noise(300)), None),
    ],
    "finite_points": [Row(log_of([1.0, NAN, 0.0, 2.0]), 2), Row(log_of([NAN]), 0), Row(log_of(), 0, None)],
    "gradient_norms": [
        Row(log_of(ONES, layers=LAYERS), 1), Row(log_of(layers=LAYERS), 1, None),
        Row(log_of(layers={"a": ONES}), 0, None), Row(log_of(loss=ONES), 0, None),
    ],
    "share_at_top": [Row(log_of([1.0, 1.0, 1.0, 0.5]), 0.75), Row(log_of([0.0, 0.0]), 0), Row(log_of([NAN]), None)],
    "share_at_one_value": [
        Row(log_of([7.0, *[1.0] * 9]), 0.9), Row(log_of(noise()), 0.01, near=0.02), Row(log_of([0.0, 0.0]), 0),
        Row(log_of([NAN]), None),
    ],
    "share_of_zeros": [
        Row(log_of([0.0, 0.0, 1.0, NAN]), 2 / 3), Row(log_of([0.0, 0.0, 1.0], [0.0, 1.0, 1.0]), 1 / 3),
        Row(log_of([NAN]), None),
    ],
    "share_repeated": [Row(log_of(np.repeat(noise(25), 4)), 0.75), Row(log_of(noise()), 0), Row(log_of([1.0]), None)],
    "smoothness": [Row(log_of(noise(400)), 1.4, near=0.2), Row(log_of(ONES[:30]), None), Row(log_of(ONES), None)],
    "share_over_clip": [
        Row(log_of(STEP, settings=LOG16), 0.4), Row(log_of(STEP), None),
        Row(log_of(STEP, settings=Settings(gradient_clip=0.0)), None),
    ],
    "steps_between_points": [Row(log_of(ONES, steps=range(0, 5000, 50)), 50), Row(log_of([1.0]), None)],
    "loss_scale_end": [Row(log_of(ONES, loss_scale=SCALE), 256), Row(log_of(ONES), None)],
    "loss_scale_halvings": [Row(log_of(ONES, loss_scale=SCALE), 8), Row(log_of(ONES), None)],
    "loss_scale_correlation": [
        Row(log_of(SCALE * noise(), loss_scale=SCALE), 1), Row(log_of(noise(), loss_scale=SCALE), 0),
        Row(log_of(noise(), loss_scale=ONES), None), Row(log_of(ONES), None),
    ],
    "loss_spike_factor": [
        Row(loss_only(at(noise(), (60, 8.0))), 8, "loss", 0.8), Row(loss_only(noise()), 1, "loss"),
        Row(loss_only(-noise()), None, "loss"),
    ],
    "loss_rise_factor": [
        Row(loss_only(np.concatenate([LOSS, 5 - LOSS])), 3.5, "loss", 0.3), Row(loss_only(LOSS), 1, "loss"),
        Row(loss_only(LOSS - 2), None, "loss"), Row(loss_only(LOSS[:3]), None, "loss"),
    ],
    "loss_rise_over_size": [
        Row(loss_only(np.where(np.arange(N) < N / 2, -2.0, 8.0)), 5, "loss", 0.1), Row(loss_only(LOSS), 0, "loss"),
        Row(loss_only(LOSS[:3]), None, "loss"), Row(loss_only(np.zeros(N)), None, "loss"),
    ],
    "loss_rise_over_noise": [
        Row(loss_only(np.where(np.arange(N) < 50, 1.0, 2.0) + np.log(noise(sigma=0.01))), 1 / 0.023, "loss", 25),
        Row(loss_only(LOSS[:3]), None, "loss"),
    ],
    "loss_lost_share": [
        Row(loss_only(np.concatenate([LOSS, LOSS[::-1]])), 1, "loss", 0.1), Row(loss_only(LOSS), 0, "loss"),
        Row(loss_only([1.0, 1.0, 1.0, *range(2, 40)]), 1e6, "loss"), Row(loss_only(LOSS[:3]), None, "loss"),
    ],
    "loss_share_above_start": [
        Row(loss_only(LOSS), 0, "loss"), Row(loss_only(LOSS[::-1]), 1, "loss"), Row(loss_only(LOSS[:3]), None, "loss"),
    ],
    "loss_peak_over_start": [
        Row(loss_only([1.0, *[3.0] * 60]), 3, "loss"), Row(loss_only(LOSS - 9), None, "loss"),
        Row(loss_only(LOSS[:3]), None, "loss"),
    ],
    "loss_share_below_start": [
        Row(loss_only(LOSS), 1, "loss"), Row(loss_only(LOSS[::-1]), 0, "loss"), Row(loss_only(LOSS[:3]), None, "loss"),
    ],
    "loss_early_over_start": [
        Row(loss_only([1.0, *[3.0] * 60]), 3, "loss"), Row(loss_only(LOSS - 9), None, "loss"),
    ],
    "loss_end_over_start": [
        Row(loss_only([2.0, *[9.0] * 60, *[3.0] * 60]), 1.5, "loss"), Row(loss_only(LOSS - 9), None, "loss"),
    ],
    "loss_burst_over_start": [
        Row(loss_only([2.0, 2.0, 8.0, 8.0, *[2.0] * 60]), 4, "loss"),
        Row(loss_only([2.0, 2.0, 8.0, *[2.0] * 60]), 1, "loss"),  # a single value is none
        Row(loss_only(LOSS - 9), None, "loss"), Row(loss_only([2.0, 2.0, 8.0, 8.0, 2.0]), None, "loss"),
    ],
    "loss_burst_over_noise": [
        Row(loss_only([1.0, 10.0, 10.0, *noise(sigma=0.1)]), math.log(10) / 0.18, "loss", 3),
        Row(loss_only(LOSS - 9), None, "loss"),
    ],
    "loss_peak_over_early_noise": [
        Row(loss_only(np.where(np.arange(N) < 50, 1.0, 2.0) + np.log(noise(sigma=0.01))), 1 / 0.01, "loss", 60),
        Row(loss_only(LOSS[:3]), None, "loss"),
    ],
    "nonfinite_share": [
        Row(log_of([1.0] * 60 + [math.inf] * 40), 40 / 95), Row(log_of([math.nan] * 5 + [1.0] * 95), 0),
        Row(log_of([1.0] * 100, [1.0] * 90 + [math.nan] * 10), 10 / 95),
    ],
    "loss_peak_over_noise": [
        Row(loss_only(np.where(np.arange(N) < 50, 1.0, 2.0) + np.log(noise(sigma=0.01))), 1 / 0.023, "loss", 25),
        Row(loss_only(LOSS[:3]), None, "loss"),
    ],
    "loss_end_over_peak": [
        Row(loss_only([1.0, *[4.0] * 60, *[2.0] * 60]), 0.5, "loss"), Row(loss_only(LOSS - 9), None, "loss"),
    ],
    "loss_fall_since_peak": [
        Row(loss_only([1.0, *[4.0] * 60, *[2.0] * 60]), 0.5, "loss"), Row(loss_only(LOSS), 0, "loss"),
        Row(loss_only([1.0, 1.0, 1.0, *[900.0] * 60, *[300.0] * 60]), 2 / 3, "loss"),
        Row(loss_only([*[1.0] * 20, *[900.0] * 60, *[300.0] * 60]), 0, "loss"),
        Row(loss_only(LOSS[:3]), None, "loss"),
    ],
    "loss_gain_since_first": [
        Row(log_of(ONES, np.linspace(4, 1, N)), 0.75, near=0.02), Row(log_of(ONES, ONES), 0),
        Row(log_of(ONES, [4.0, 3.0]), None), Row(log_of(ONES), None),
    ],
    "loss_gain_late": [
        Row(log_of(ONES, [4.0] * 10 + [2.0] * 90), 0), Row(log_of(ONES, np.linspace(4, 1, N)), 0.71, near=0.02),
        Row(log_of(ONES, [4.0] * 5), None), Row(log_of(ONES), None),
    ],
    "decades_above_first": [
        Row(log_of([0.1, 0.1, *[10.0] * 50]), 2), Row(log_of(ONES), 0), Row(log_of([1.0, 2.0]), None),
    ],
    "first_over_noise": [
        Row(log_of([0.1, 0.1, *(10 * noise(50, sigma=0.05))]), 50, near=20), Row(log_of([1.0, 2.0]), None),
    ],
    "decades_of_last_points": [
        Row(log_of([*ONES, 100.0]), 2), Row(log_of([*ONES, 100.0, 1000.0]), 2), Row(log_of([*ONES, 100.0, 1.0]), 0),
        Row(log_of([*ONES, 10.0, 9.0, 11.0]), 0.04, near=0.01), Row(log_of([1.0, 2.0]), None),
    ],
    "last_over_noise": [Row(log_of([*noise(sigma=0.05), 100.0]), 40, near=12), Row(log_of([1.0, 2.0]), None)],
    "decades_above_typical": [
        Row(log_of([*ONES, *[100.0] * 8]), 2), Row(log_of(STEP), 2), Row(log_of(ONES), 0), Row(log_of(), None, None),
    ],
    "early_hump_decades": [
        Row(log_of([1.0, 1.0, 1.0, *[50.0, 1.0] * 8, *[1.0] * 300]), 1.7), Row(log_of(ONES), 0),
        Row(log_of([50.0, *[1.0] * 300]), 0), Row(log_of([1.0] * 150 + [50.0] * 10 + [1.0] * 150), 0),
        Row(log_of(), None, None),
    ],
    "zeros_at_end": [
        Row(log_of([1.0, 0.0, 2.0, *[0.0] * 9]), 9), Row(log_of([0.0, 2.0, 0.0]), 0), Row(log_of(ONES), 0),
    ],
    "norm_ends_at": [
        Row(log_of(ONES[:26], ONES), 0.25, near=0.01), Row(log_of(ONES, ONES), 1), Row(log_of([1.0], [1.0]), None),
    ],
    "loss_points": [Row(loss_only(at(LOSS, (3, NAN))), N - 1, "loss"), Row(log_of(ONES), 0)],
    "alternation": [
        Row(loss_only(TURNS), 1, "loss"), Row(loss_only(noise(400)), 2 / 3, "loss"), Row(loss_only(LOSS), 0, "loss"),
        Row(loss_only(LOSS[:30]), None, "loss"),
    ],
    "loss_swing": [
        Row(loss_only(TURNS), 0.4, "loss"), Row(loss_only(ONES), 0, "loss"), Row(loss_only(LOSS[:30]), None, "loss"),
    ],
    "late_scatter_growth": [
        Row(loss_only(noise(400, sigma=0.01) ** np.where(np.arange(400) < 250, 1, 5)), 5, "loss", 1.2),
        Row(loss_only(noise(400)), 1, "loss", 0.3), Row(loss_only(LOSS[:30]), None, "loss"),
    ],
    "loss_rise_after_lr_jump": [
        Row(log_of(loss=0.5 + STEP / 100, lr=np.where(np.arange(N) < 60, 1e-3, 1e-2)), 1.94, "loss"),
        Row(log_of(loss=LOSS, lr=np.where(np.arange(N) < 60, 1e-3, 1e-2)), 0, "loss"),
        Row(log_of(loss=0.5 + STEP / 100, lr=WARM), 0, "loss"), Row(log_of(loss=LOSS), None, "loss"),
    ],
}  # fmt: skip
ROWS = [(name, row) for name, rows in TABLE.items() for row in rows]


@pytest.mark.parametrize(("name", "row"), ROWS, ids=[f"{name}-{i}" for i, (name, _) in enumerate(ROWS)])
def test_what_it_says(name: str, row: Row) -> None:
    said = MEASURES[name].function(curve_of(row.log, row.metric))
    assert said == (None if row.expected is None else pytest.approx(row.expected, abs=row.near))


def test_every_measure_is_tried() -> None:
    elsewhere = set(failure.MEASURES)  # tests/detect/measures/test_failure.py
    assert set(TABLE) == set(MEASURES) - elsewhere
    numbers = {name for name, row in ROWS if row.expected is not None}
    assert numbers == set(MEASURES) - elsewhere


@pytest.mark.parametrize("name", MEASURES)
def test_a_number_or_nothing_whatever_the_run(name: str) -> None:
    logs = [log_of(), log_of([NAN]), log_of([0.0, 0.0]), log_of(loss=[NAN, NAN]), log_of([1.0], [1.0])]
    for log in logs:
        run = curve_of(log).run
        for series in (None, *run.series):
            said = MEASURES[name].function(run.curve(series))
            assert said is None or (isinstance(said, float | int) and not math.isinf(said)), (name, said)


def test_every_measure_says_what_it_is_on_its_own() -> None:
    """On the page of a rule it stands without its neighbours: no "the same", and no two that say one thing."""
    meanings = [measure.meaning for measure in MEASURES.values()]
    assert len(set(meanings)) == len(MEASURES)
    assert not [meaning for meaning in meanings if "the same" in meaning]


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("decades_above_baseline", "rise of the end over the lowest level, in decades"),
        ("masked_share", "non-finite norms beside a loss of exactly 0.0, as a share"),
        ("loss_rise_factor", "end of the loss over its best level, as a factor"),
        ("zeros_at_end", "exact zeros that end the log"),
        ("first_over_noise", "end over the first two values, in sigma of its own scatter"),
        ("typical_norm", "median of the norm"),
    ],
)
def test_its_unit_stands_behind_it(name: str, meaning: str) -> None:
    assert MEASURES[name].meaning == meaning


def test_measures_are_finite_on_real_runs() -> None:
    run = next(run for run in labelled_runs() if run.truth.get("layers"))
    curve = curve_of(run.log, None).run.curve(None)
    for series in curve.run.series:
        for name, measure in MEASURES.items():
            said = measure.function(curve.run.curve(series))
            assert said is None or not math.isnan(said), (name, series.metric)
