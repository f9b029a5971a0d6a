"""Values at the edges of what a float holds are compared like any other, without a warning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gradtrend

pytestmark = pytest.mark.filterwarnings("error")


def rows(values: list[float]) -> str:
    return "".join(json.dumps({"step": at, "grad_norm": value}) + "\n" for at, value in enumerate(values))


def test_values_that_are_nearly_nothing(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(rows([5e-324] * 30))
    (tmp_path / "train.log").write_text("".join(f"step {at} grad_norm 1e-320\n" for at in range(30)))
    assert list(gradtrend.analyze_all(tmp_path))


def test_the_largest_values_of_a_log_without_steps(tmp_path: Path) -> None:
    lines = [f"loss {value}, grad norm {value}\n" for value in ("1.7e308", "1.6e308") * 12]
    (tmp_path / "train.log").write_text("".join([*lines, "Training complete.\n", "Training started.\n", *lines]))
    assert list(gradtrend.analyze_all(tmp_path))


def test_the_largest_values_with_either_sign_at_the_same_steps(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(rows([1.7e308] * 30) + rows([-1.7e308] * 30))
    interleaved = zip(rows([1.7e308] * 30).splitlines(True), rows([-1.7e308] * 30).splitlines(True), strict=True)
    (tmp_path / "both").mkdir()
    (tmp_path / "both/metrics.jsonl").write_text("".join(line for pair in interleaved for line in pair))
    assert list(gradtrend.analyze_all(tmp_path))


def test_the_largest_values_of_two_logs_that_disagree(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(rows([1.0] * 20 + [1.7e308] * 9))
    (tmp_path / "metrics.csv").write_text(
        "step,grad_norm\n" + "".join(f"{at},{1.0 if at < 20 else -1.7e308}\n" for at in range(29))
    )
    assert list(gradtrend.analyze_all(tmp_path))
