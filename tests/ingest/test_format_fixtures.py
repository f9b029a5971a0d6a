"""Each fixture run with an `expected.toml` is found, claimed by one adapter a file, and read point by point."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gradtrend.ingest.formats import ADAPTERS
from gradtrend.ingest.runs.load import load_run
from gradtrend.ingest.runs.parts import Choice
from gradtrend.model.runlog import RunLog
from tests.ingest.readings import runs_at
from tests.places import RUNS

CASES = [
    path.parent
    for path in sorted(RUNS.glob("*/*/expected.toml"))
    if "points" in tomllib.loads(path.read_text()) and path.parents[1].name in {adapter.name for adapter in ADAPTERS}
]


def expected(case: Path) -> dict[str, Any]:
    return tomllib.loads((case / "expected.toml").read_text())


def load(case: Path) -> RunLog:
    return load_run(runs_at(case)[-1], Choice())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_every_point_is_read(case: Path) -> None:
    want = expected(case)
    run = load(case)
    assert case.parent.name in {source.format for source in run.sources}
    if "metric" not in want:
        assert run.table.filter(pl.col("role") == "grad_norm").is_empty()
        return
    rows = run.table.filter((pl.col("series") == want["metric"]) & (pl.col("role") == "grad_norm"))
    steps = rows["step"].unique().sort()
    assert (len(steps), steps[0], steps[-1]) == (want["points"], want["first_step"], want["last_step"])
    losses = run.table.filter(pl.col("role") == "loss")
    for key, table in (("grad_nonfinite", rows), ("loss_nonfinite", losses)):
        assert table.filter(~pl.col("value").is_finite())["step"].min() == want.get(key)


def test_there_are_cases_of_every_kind() -> None:
    assert len(CASES) >= 20
    assert {case.parent.name for case in CASES} >= {"console", "csv", "mmengine", "trackio", "trainer-state", "wandb"}
