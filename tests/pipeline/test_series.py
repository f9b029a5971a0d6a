"""The series of a log in numbers, before any judgement."""

from __future__ import annotations

import math

import polars as pl
import pytest

from gradtrend.model.runlog import RunLog
from gradtrend.model.series import LoggedSeries
from gradtrend.model.words import Role
from gradtrend.pipeline.series import logged_series

ROLES = {"train_loss": "loss", "grad_norm": "grad_norm", "max_grad_norm": "other"}


@pytest.fixture
def log() -> RunLog:
    """Three series of four points; the steps go back once and the norm ends in NaN."""
    rows = [
        (name, role, None, step, math.nan if name == "grad_norm" and place == 3 else 1.0, int(place > 1))
        for name, role in ROLES.items()
        for place, step in enumerate((0, 1, 1, 2))
    ]
    texts = dict.fromkeys(("series", "role", "layer"), pl.Categorical)
    numbers = {"step": pl.Int64, "value": pl.Float64, "segment": pl.Int32}
    reasons = {name: f"{name} is {role}" for name, role in ROLES.items()}
    return RunLog("out/run", pl.DataFrame(rows, schema=texts | numbers, orient="row"), reasons=reasons)


def test_the_gradient_norm_comes_first_with_all_its_numbers(log: RunLog) -> None:
    norm, loss, other = logged_series(log)
    assert norm == LoggedSeries("grad_norm", Role.GRAD_NORM, None, 4, 0, 2, 2, 1, "grad_norm is grad_norm")
    assert [one.metric for one in (loss, other)] == ["train_loss", "max_grad_norm"]
    assert (loss.nonfinite, other.nonfinite) == (0, 0)
