from __future__ import annotations

import math

import polars as pl
import pytest

from gradtrend.model.runlog import Note, RunLog, Skipped, Source
from gradtrend.report.json.series import log_to_dict
from gradtrend.report.text.series import log_text
from gradtrend.report.wording.style import Style

NAMES = ("train_loss", "grad_norm", "max_grad_norm")
ROLES = ("loss", "grad_norm", "other")


@pytest.fixture
def log() -> RunLog:
    """Three series of four points; the norm's steps go back once and it ends in NaN."""
    rows = [
        {
            "series": name,
            "role": role,
            "layer": None,
            "step": step,
            "value": math.nan if name == "grad_norm" and place == 3 else 1.0,
            "time": None,
            "line": place + 1,
            "segment": int(place > 1),
        }
        for name, role in zip(NAMES, ROLES, strict=True)
        for place, step in enumerate((0, 1, 1, 2))
    ]
    table = pl.DataFrame(rows, schema_overrides={"layer": pl.String, "time": pl.Float64}).cast(
        {"series": pl.Categorical}
    )
    sources = (Source("jsonl", "metrics.jsonl", 3, 12, (Skipped("truncated", line=5),), 1),)
    return RunLog("out/run", table, sources, (Note("steps-go-back", "Steps 1 to 2 are logged twice."),))


def explain(metric: str) -> str:
    """A reason that names its metric, as the pipeline gives."""
    return f"because of {metric}"


def test_the_gradient_norm_comes_first_with_all_its_numbers(log: RunLog) -> None:
    found = log_to_dict(log, explain)
    assert found["series"][0] == {
        "metric": "grad_norm",
        "role": "grad_norm",
        "layer": None,
        "points": 4,
        "first_step": 0,
        "last_step": 2,
        "segments": 2,
        "nonfinite": 1,
        "why": "because of grad_norm",
    }
    assert [row["metric"] for row in found["series"]] == ["grad_norm", "train_loss", "max_grad_norm"]
    assert found["sources"][0]["skipped"] == [{"line": 5, "offset": None, "reason": "truncated"}]


def test_the_text_says_why_a_look_alike_was_not_taken(log: RunLog) -> None:
    lines = log_text(log, explain, Style()).splitlines()
    assert "  grad_norm      grad_norm  -      4       0 to 2  2      1" in lines
    assert "  max_grad_norm: because of max_grad_norm" in lines
    assert "  train_loss: because of train_loss" not in lines
    assert "  steps-go-back: Steps 1 to 2 are logged twice." in lines
    assert any("skipped 1: line 5 truncated" in line for line in lines)


def test_a_reason_shared_by_many_is_given_once(log: RunLog) -> None:
    lines = log_text(log, lambda metric: "has norm in its name", Style()).splitlines()
    assert "  grad_norm, max_grad_norm: has norm in its name" in lines


def test_a_log_without_a_gradient_norm_says_so(log: RunLog) -> None:
    without = RunLog(log.run, log.table.filter(pl.col("role") != "grad_norm"), log.sources)
    assert "  No series is taken as the gradient norm; --metric NAME names it." in log_text(without, explain, Style())
