from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from gradtrend.model.runlog import Note, RunLog, Skipped, Source
from gradtrend.model.series import LoggedSeries
from gradtrend.model.words import Role
from gradtrend.report.json.series import log_to_dict
from gradtrend.report.text.lines import listed
from gradtrend.report.text.series import log_text
from gradtrend.report.wording.style import Style

SERIES = tuple(
    LoggedSeries(name, role, None, 4, 0, 2, 2, nonfinite, f"because of {name}")
    for name, role, nonfinite in (
        ("grad_norm", Role.GRAD_NORM, 1),
        ("train_loss", Role.LOSS, 0),
        ("max_grad_norm", Role.OTHER, 0),
    )
)


@pytest.fixture
def log() -> RunLog:
    """A log with a damaged line and steps that go back."""
    sources = (Source("jsonl", "metrics.jsonl", 3, 12, (Skipped("truncated", line=5),), 1),)
    return RunLog("out/run", pl.DataFrame(), sources, (Note("steps-go-back", "Steps 1 to 2 are logged twice."),))


def test_all_numbers_of_a_series_are_in_the_json(log: RunLog) -> None:
    found = log_to_dict(log, SERIES)
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
    lines = log_text(log, SERIES, Style()).splitlines()
    assert "  grad_norm      grad_norm  -      4       0 to 2  2      1" in lines
    assert "  max_grad_norm: because of max_grad_norm" in lines
    assert "  train_loss: because of train_loss" not in lines
    assert "  steps-go-back: Steps 1 to 2 are logged twice." in lines
    assert any("skipped 1: line 5 truncated" in line for line in lines)


def test_a_reason_shared_by_many_is_given_once(log: RunLog) -> None:
    alike = [replace(one, why="has norm in its name") for one in SERIES]
    lines = log_text(log, alike, Style()).splitlines()
    assert "  grad_norm, max_grad_norm: has norm in its name" in lines


def test_a_log_without_a_gradient_norm_says_so(log: RunLog) -> None:
    lines = log_text(log, SERIES[1:], Style())
    assert "  No series is taken as the gradient norm; --metric NAME names it." in lines


@pytest.mark.parametrize("width", [20, 60, 88, 160])
def test_names_are_printed_whole(log: RunLog, width: int) -> None:
    name = "info/learner/a_policy_with_a_long_name/learner_stats/" + "x" * 90 + "/grad_gnorm"
    alike = [replace(SERIES[0], metric=name), *SERIES]
    lines = log_text(log, alike, Style(width=width)).splitlines()
    assert any(line.split()[:1] == [name] for line in lines)
    assert any(name in line for line in lines if line.endswith((":", ",")) or "because" in line)
    assert all("…" not in line for line in lines)
    rows = [line for line in lines if "grad_norm  -" in line]
    assert len({line.index("  -  ") for line in rows}) == 1


def test_what_is_not_safe_to_print_is_said(log: RunLog) -> None:
    text = log_text(log, [replace(SERIES[0], metric="grad\x1b[31m_norm")], Style())
    assert "\x1b" not in text
    assert "  grad\\x1b[31m_norm  " in text
    assert "--metric takes them so" in text
    assert "--metric takes them so" not in log_text(log, SERIES, Style())


def test_names_that_differ_in_their_middle_are_listed_whole() -> None:
    long = [f"info/learner/agent_{i}/learner_stats/grad_gnorm" for i in (1, 2)]
    assert listed(long, Style()) == ", ".join(long)
    assert listed(["x" * 40, "short"], Style()) == f"{'x' * 14}…{'x' * 15}, short"
