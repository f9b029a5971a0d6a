"""Measures of known causes, each on a curve made by hand for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import polars as pl
import pytest

from gradtrend.detect.curves.failure import rise_began, rise_of
from gradtrend.detect.curves.run import run_curves
from gradtrend.detect.measures.failure import MEASURES
from gradtrend.model.runlog import Note, RunLog
from gradtrend.model.words import Role
from tests.detect.runs import curve_of, log_of, rows

NAN, INF = math.nan, math.inf
FALLS = [4.0 - 0.1 * i for i in range(20)]
NORM = [1.0, 1.1, 0.9, 1.05] * 5
DIES = [*NORM[:12], *[NAN] * 8]
STOPPED = (Note("stopped-on-nan", "train.log ends with: Loss is nan, stopping training"),)


def with_others(others: Mapping[str, Sequence[float]], norm: Sequence[float] = NORM) -> RunLog:
    """A run that logs further metrics."""
    log = log_of(norm, FALLS)
    more = [rows(name, Role.OTHER, values) for name, values in others.items()]
    return RunLog("run", pl.concat([log.table, *more]), losses=("loss",))


def resumed(before: Sequence[float], after: Sequence[float]) -> RunLog:
    """A run whose steps go back to 8 after `before`."""
    first = rows("loss", Role.LOSS, before)
    second = rows("loss", Role.LOSS, after, range(8, 8 + len(after))).with_columns(pl.lit(1, pl.Int32).alias("segment"))
    return RunLog("run", pl.concat([first, second]), losses=("loss",))


TABLE: dict[str, list[tuple[RunLog, float | None]]] = {
    "norms_zero": [(log_of([0.0] * 9 + [1.0]), 0.9), (log_of(NORM), 0), (log_of(loss=FALLS), None)],
    "losses_zero": [(log_of(NORM, [0.0] * 5 + FALLS[:15]), 0.25), (log_of(NORM), None)],
    "rates_zero": [(log_of(NORM, lr=[0.0] * 20), 1), (log_of(NORM), None)],
    "loss_change": [(log_of(NORM, [4.0] * 10 + [3.0] * 10), 0.25), (log_of(NORM, [2.0] * 20), 0), (log_of(NORM), None)],
    "reward_spread": [(with_others({"reward_std": [0.2, NAN, 0.4, 0.3]}), 0.3), (log_of(NORM), None)],
    "groups_without_spread": [(with_others({"frac_reward_zero_std": [1.0, 0.5, 1.0]}), 1), (log_of(NORM), None)],
    "failure_rows": [(log_of(DIES), 12), (log_of([NAN] * 4), 0), (log_of(NORM), None)],
    "failure_rise": [
        (log_of([*NORM[:12], 30.0, *[NAN] * 7]), 30), (log_of([1.0] * 9 + [NAN] * 4), 1),
        (log_of([NAN] * 4), 1), (log_of(), None),
    ],
    "nonfinite_norms": [(log_of(DIES), 0.4), (log_of(NORM), 0), (log_of(loss=FALLS), None)],
    "nonfinite_losses": [(log_of(NORM, [*FALLS[:15], *[NAN] * 5]), 0.25), (log_of(NORM), None)],
    "last_loss_zero": [(log_of(DIES, [*FALLS[:12], *[0.0] * 8]), 1), (log_of(NORM, FALLS), 0), (log_of(NORM), None)],
    "fails_for_good": [
        (log_of(DIES), 1), (log_of(NORM), 0), (log_of([NAN, NAN]), 1), (log_of([NAN], [1.5]), 0),
        (log_of([NAN], [NAN]), 1), (log_of([NAN], [0.0]), 1), (log_of(NORM, notes=STOPPED), 1), (log_of(), 0),
    ],
    "finite_losses": [(log_of(DIES, [*FALLS[:12], *[0.0] * 8]), 12), (log_of(NORM), 0)],
    "nonfinite_seen": [(log_of(DIES, FALLS), 8), (log_of(NORM, FALLS), 0)],
    "updates_said_skipped": [(log_of(NORM, signs=frozenset({"norm-not-finite"})), 1), (log_of(NORM), 0)],
    "failure_in_words": [
        (log_of(signs=frozenset({"rows-of-nan"})), 1), (log_of(NORM, signs=frozenset({"stops-on-nonfinite"})), 1),
        (log_of(DIES, signs=frozenset({"stops-on-nonfinite"})), 0), (log_of(NORM), 0),
    ],
    "reward_rows": [
        (with_others({"rewards/format": [1.0], "reward": [0.5], "rewarding": [1.0]}), 2), (log_of(NORM), 0),
    ],
    "player_rows": [
        (with_others({"rollout/ep_rew_mean": [1.0], "train/value_loss": [0.5], "q1_loss": [1.0], "preview": [1.0]}), 3),
        (log_of(NORM), 0),
    ],
    "norm_rows": [(log_of([0.0, 0.0, NAN, 1.0]), 3), (log_of(loss=FALLS), 0)],
    "loss_scale_falls_until": [
        (log_of(NORM, loss_scale=[8.0, 4.0, 2.0, *[1.0] * 17]), 0.15), (log_of(NORM, loss_scale=[8.0] * 20), 0),
        (log_of(NORM, loss_scale=[8.0, 4.0]), None), (log_of(NORM), None),
    ],
    "exploding_terms": [
        (with_others({"kl_loss": [2.0, 9.0, 900.0], "mse_loss": [0.3, 0.3, 0.2]}), 1),
        (with_others({"kl_loss": [1e-4, 0.1, 1.5], "mse_loss": [0.3, 0.3, 0.2]}), 0),
        (with_others({"kl_loss": [2.0, 9.0, 900.0]}), 0), (log_of(NORM, FALLS), 0),
    ],
    "loss_jump_at_resume": [
        (resumed([2.0] * 10, [3.0] * 5), 0.5), (resumed([2.0] * 10, [1.5] * 5), -0.25), (log_of(NORM, FALLS), None),
        (log_of(NORM), None),
    ],
    "first_loss": [(log_of(NORM, [NAN, 7.5, 6.0]), 7.5), (log_of(NORM), None)],
    "bad_terms": [
        (with_others({"koleo_loss": [0.1, INF, 0.1], "dino_loss": [1.0, 1.0, 1.0]}), 1),
        (with_others({"koleo_loss": [0.1, 0.2, 0.1], "dino_loss": [1.0, 1.0, 1.0]}), 0),
        (with_others({"grad_norm_loss_head": [0.1, INF, 0.1]}), 0), (log_of(NORM, FALLS), 0),
    ],
}  # fmt: skip
ROWS = [(name, i, log, expected) for name, cases in TABLE.items() for i, (log, expected) in enumerate(cases)]


@pytest.mark.parametrize(
    ("name", "log", "expected"), [(n, log, e) for n, _, log, e in ROWS], ids=[f"{n}-{i}" for n, i, _, _ in ROWS]
)
def test_what_it_says(name: str, log: RunLog, expected: float | None) -> None:
    metric = "grad_norm" if (log.table["series"] == "grad_norm").any() else None
    said = MEASURES[name].function(curve_of(log, metric))
    assert said == (None if expected is None else pytest.approx(expected, abs=1e-6))


def test_every_measure_is_tried_and_explained() -> None:
    assert set(TABLE) == set(MEASURES)
    assert all(measure.function.__doc__ and measure.says for measure in MEASURES.values())


def test_a_rise_begins_where_the_value_left_its_level() -> None:
    log = log_of([*NORM[:12], 3.0, 30.0, 300.0, *[NAN] * 5], steps=range(0, 200, 10))
    assert rise_began(run_curves(log)) == 120
    assert rise_began(run_curves(log_of(DIES))) is None
    assert rise_began(run_curves(log_of(loss=[*FALLS[:12], 7.0, 9.0, *[NAN] * 6]))) == 12


@pytest.mark.parametrize(
    ("values", "rise"), [([1.0, 1.0, 5.0], 5), ([3.0], 1), ([], 1), ([0.0, 0.0, 2.0], 1), ([-1.0, -1.0, -2.0], 1)]
)
def test_a_rise_is_of_the_last_value_over_those_before(values: list[float], rise: float) -> None:
    import numpy as np

    assert rise_of(np.array(values)) == rise
