"""`gradtrend rule ID --format toml`: a rule's file, ready to be changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import gradtrend
from gradtrend.cli import main
from tests.places import EXPLODING


def test_a_limit_changed_in_the_printed_file_changes_the_findings(tmp_path: Path) -> None:
    printed = CliRunner().invoke(main, ["rule", "GT101", "--format", "toml"])
    assert printed.exit_code == 0
    (tmp_path / "GT101.toml").write_text(printed.output.replace("above = 1.0", "above = 100.0"))
    assert gradtrend.analyze(EXPLODING).verdict == "exploding"
    assert gradtrend.analyze(EXPLODING, rules_dir=tmp_path).verdict == "nan-collapse"
    again = CliRunner().invoke(main, ["rule", "GT101", "--format", "toml", "--rules", str(tmp_path)])
    assert "above = 100.0" in again.output


def test_one_rule_at_a_time() -> None:
    assert CliRunner().invoke(main, ["rule", "--format", "toml"]).exit_code == 2


@pytest.mark.parametrize("select", ["GT1", ["GT1"], "GT101,GT103"])
def test_python_takes_one_word_or_several(select: str | list[str]) -> None:
    report = gradtrend.analyze(EXPLODING, select=select)
    assert {finding.rule for finding in report.findings} == {"GT101"}


def test_every_mistake_of_a_rule_file_stands_on_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('id = "GT900"\nnonsense = 1\n')
    result = CliRunner().invoke(main, ["rule", "--rules", str(tmp_path)])
    assert result.exit_code == 2
    assert "\\x0a" not in result.output
    assert len([line for line in result.output.splitlines() if "bad.toml" in line]) >= 3
