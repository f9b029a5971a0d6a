from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import gradtrend
from tests.places import LIGHTLY


def test_one_run_gives_its_report() -> None:
    report = gradtrend.analyze(LIGHTLY / "exploding_lr_nan")
    assert report.verdict is gradtrend.Verdict.EXPLODING
    assert report.nonfinite is not None
    assert report.nonfinite.grad_first_step == 7
    assert any(finding.rule == "GT101" for finding in report.findings)


def test_a_missing_path_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(gradtrend.InputError, match="missing"):
        gradtrend.analyze(tmp_path / "missing")


def test_several_runs_are_refused_and_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_text("".join(_rows()))
    with pytest.raises(gradtrend.InputError, match="2 runs") as caught:
        gradtrend.analyze(tmp_path)
    assert str(tmp_path / "a") in (caught.value.hint or "")


def test_a_wrong_rule_name_is_a_config_error() -> None:
    with pytest.raises(gradtrend.ConfigError, match="nonsense"):
        gradtrend.analyze(LIGHTLY / "exploding_lr_nan", select=["nonsense"])


def test_everything_public_is_there() -> None:
    for name in gradtrend.__all__:
        assert hasattr(gradtrend, name)


def _rows() -> Iterator[str]:
    return (f'{{"step": {step}, "grad_norm": 1.0, "loss": 1.0}}\n' for step in range(10))
