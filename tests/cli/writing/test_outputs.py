"""Where reports go: several files, the format of each, and what standard output says beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from click.testing import Result

from gradtrend.report.json.report import schema

Call = Callable[..., Result]


def test_a_file_has_the_report_and_standard_output_the_line_that_sums_it_up(
    call: Call, exploding: Path, stable: Path, tmp_path: Path
) -> None:
    target = tmp_path / "report.json"
    done = call("analyze", exploding, "-o", target)
    assert (done.exit_code, done.stdout) == (1, f"{exploding}: exploding (confidence 0.76)\n")
    assert json.loads(target.read_text())["runs"][0]["verdict"] == "exploding"
    several = call("analyze", exploding, stable, "-o", target)
    assert several.stdout == "2 runs: 1 exploding, 1 stable; 2 errors\n"
    assert call("analyze", exploding, "-o", target, "--quiet").output == ""


def test_several_files_each_in_the_format_of_its_suffix(call: Call, exploding: Path, tmp_path: Path) -> None:
    text, document, lines = (tmp_path / name for name in ("a.txt", "a.json", "a.JSONL"))
    done = call("analyze", exploding, "-o", text, "-o", document, "-o", lines)
    assert done.exit_code == 1
    assert text.read_text().startswith(f"{exploding}: exploding")
    jsonschema.validate(json.loads(document.read_text()), schema())
    assert len(lines.read_text().splitlines()) == 2
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_the_format_decides_where_it_is_given_and_one_file(call: Call, exploding: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.txt"
    assert call("analyze", exploding, "-o", target, "--format", "json").exit_code == 1
    assert json.loads(target.read_text())["exit_code"] == 1


def test_standard_output_among_the_outputs(call: Call, exploding: Path, tmp_path: Path) -> None:
    done = call("analyze", exploding, "-o", tmp_path / "a.txt", "-o", "-", "--format", "json")
    assert json.loads(done.stdout)["runs"][0]["run"] == str(exploding)
    assert (tmp_path / "a.txt").read_text().startswith(f"{exploding}: exploding")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-o", "report.yaml"], "Known: .txt, .json, .jsonl"),
        (["-o", "a.json", "-o", "a.json"], "twice"),
        (["-o", "a.json", "-o", "b.json", "--format", "text"], "which is it for"),
        (["-o", "a.json", "-o", "no/such/folder/b.json"], "cannot be written"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_any_work(
    call: Call, exploding: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("analyze", exploding, *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_log_among_several_outputs_is_refused(call: Call, stable: Path, tmp_path: Path) -> None:
    log = stable / "metrics.jsonl"
    before = log.read_bytes()
    done = call("analyze", stable, "-o", tmp_path / "a.json", "-o", log)
    assert done.exit_code == 2
    assert "is what is to be read" in done.stderr
    assert log.read_bytes() == before
    assert not (tmp_path / "a.json").exists()


def test_a_path_in_place_of_a_command_is_told_which_was_meant(call: Call, exploding: Path) -> None:
    for path in (str(exploding), "out/run", "-"):
        done = call(path)
        assert done.exit_code == 2
        assert f"Did you mean 'gradtrend analyze {path}'?" in done.stderr
    assert "gradtrend analyze" not in call("analyse").stderr
