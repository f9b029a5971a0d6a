"""What one logged row holds: its step, its leaves, its settings."""

from __future__ import annotations

from typing import Any

import pytest

from gradtrend.ingest.reading.rows import flatten, settings_in, step_of, time_of


@pytest.mark.parametrize(
    ("row", "step"),
    [
        ({"step": "12/100", "loss": 1.0}, 12),
        ({"iter": " 3 / 9 "}, 3),
        ({"global_step/max_steps": "5/500"}, 5),
        ({"step/total": "5/500", "step": 7}, 7),
        ({"training_iteration": 4, "timesteps_total": None}, 4),
        ({"training_iteration": 4, "timesteps_total": 16000}, 16000),
        ({"global_step/max_steps": "five of 500"}, None),
        ({"step": "5/"}, None),
        ({"loss/step": "5/500"}, None),
        ({"date": "5/2026"}, None),
        ({"step": "9" * 30 + "/" + "9" * 31}, None),
    ],
)
def test_the_step_of_a_row(row: dict[str, Any], step: int | None) -> None:
    assert step_of(row) == step


def test_leaves_stand_in_the_order_of_the_row() -> None:
    row = {"a": 1, "b": {"c": {"d": 2}, "e": [3], "f": [4, 5]}, "config": {"lr": 6}, "g": {"config": {"h": 7}}, "i": 8}
    assert list(flatten(row)) == [("a", 1), ("b/c/d", 2), ("b/e", 3), ("g/config/h", 7), ("i", 8)]
    assert settings_in(row) == {"lr": 6}
    assert settings_in({"config": "base.yaml", "loss": 1.0}) == {}


def test_a_row_of_any_depth() -> None:
    deep: dict[str, Any] = {"x": 1}
    for _ in range(20_000):
        deep = {"": deep}
    assert [value for _, value in flatten(deep)] == [1]


def test_a_time_beyond_any_clock_is_none() -> None:
    assert time_of({"timestamp": 10**400}) is None
    assert time_of({"timestamp": 1.7e9}) == 1.7e9
