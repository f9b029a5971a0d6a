from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import Result

from gradtrend.model.runlog import RunLog
from gradtrend.pipeline import analyze as pipeline
from gradtrend.pipeline import parallel
from gradtrend.report.json.report import schema

Call = Callable[..., Result]


def test_exit_codes_of_verdicts(call: Call, exploding: Path, stable: Path, short: Path) -> None:
    assert call("analyze", stable).exit_code == 0
    assert call("analyze", exploding).exit_code == 1
    assert call("analyze", short).exit_code == 3
    assert call("analyze", short, "--allow-undetermined").exit_code == 0
    assert call("analyze", stable, exploding, short).exit_code == 1
    assert call("analyze", stable, short).exit_code == 3


def test_exit_codes_of_paths(call: Call, exploding: Path, stable: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    done = call("analyze", missing)
    assert done.exit_code == 3
    assert str(missing) in done.output
    assert "Traceback" not in done.output
    assert call("analyze", missing, stable).exit_code == 3
    assert call("analyze", missing, exploding).exit_code == 1
    assert call("analyze", missing, "--allow-undetermined").exit_code == 0


@pytest.mark.parametrize(
    ("fail_on", "expected"),
    [("error", 1), ("info", 1), ("never", 0), ("exploding", 1), ("GT101", 1), ("vanishing,GT401", 0), ("explodng", 2)],
)
def test_fail_on(call: Call, exploding: Path, fail_on: str, expected: int) -> None:
    assert call("analyze", exploding, "--fail-on", fail_on).exit_code == expected


def test_exit_zero(call: Call, exploding: Path, tmp_path: Path) -> None:
    assert call("analyze", exploding, tmp_path / "missing", "--exit-zero").exit_code == 0


def test_select_and_ignore_filter_findings_and_exit_code_not_the_verdict(call: Call, exploding: Path) -> None:
    for words in (("--ignore", "GT1,GT2"), ("--ignore", "GT1", "--ignore", "GT2"), ("--select", "GT5")):
        done = call("analyze", exploding, "--format", "json", *words)
        run = json.loads(done.output)["runs"][0]
        assert run["verdict"] == "exploding"
        assert not [f for f in run["findings"] if f["rule"].startswith(("GT1", "GT2"))]
        assert done.exit_code == 0
    only = json.loads(call("analyze", exploding, "--format", "json", "--select", "exploding").stdout)
    assert {f["rule"] for f in only["runs"][0]["findings"]} == {"GT101"}


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--select", "XX"), "gradtrend rule"),
        (("--ignore", "explodin"), "exploding"),
        (("--rules", "no/such/folder"), ""),
        (("--source", "jsonlines"), ""),
        (("-o", "no/such/folder/report.txt"), "cannot be written"),
        (("--format", "yaml"), "text"),
        (("--colour",), "--colour"),
    ],
)
def test_wrong_options_exit_2_and_say_what(call: Call, stable: Path, words: tuple[str, ...], hint: str) -> None:
    done = call("analyze", stable, *words)
    assert done.exit_code == 2
    assert words[-1] in done.stderr
    assert hint in done.stderr
    assert done.stdout == ""


def test_json_is_the_contract(call: Call, exploding: Path, stable: Path, tmp_path: Path) -> None:
    done = call("analyze", exploding, stable, tmp_path / "missing", "--format", "json")
    report: Any = json.loads(done.stdout)
    jsonschema.validate(report, schema())
    assert report["exit_code"] == done.exit_code == 1
    assert [run["run"] for run in report["runs"]] == [str(exploding), str(stable)]
    assert [run["verdict"] for run in report["runs"]] == ["exploding", "stable"]
    assert [failure["path"] for failure in report["failures"]] == [str(tmp_path / "missing")]
    assert f"gradtrend: {tmp_path / 'missing'}: " in done.stderr


def test_quiet_is_silent_where_nothing_is_wrong(call: Call, exploding: Path, stable: Path) -> None:
    assert call("analyze", stable, "--quiet").output == ""
    loud, quiet = call("analyze", exploding, stable).output, call("analyze", exploding, stable, "-q").output
    assert str(stable.relative_to(stable.parents[1])) in loud  # what all runs lie below is told once
    assert str(stable) not in quiet
    assert "2 runs" not in quiet
    assert quiet.startswith(f"{exploding}: exploding")


def test_a_folder_of_runs_is_judged_run_by_run(call: Call, stable: Path, short: Path) -> None:
    done = call("analyze", stable.parent, "--format", "json")
    assert done.exit_code == 3
    verdicts = {run["run"]: run["verdict"] for run in json.loads(done.stdout)["runs"]}
    assert verdicts == {str(stable): "stable", str(short): "undetermined"}


def test_a_bug_in_one_run_loses_none_of_the_others(
    call: Call, exploding: Path, stable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = pipeline.judge

    def breaks(log: RunLog, *rest: Any) -> Any:
        return real(log, *rest) if log.run == str(exploding) else 1 / 0

    monkeypatch.setattr(pipeline, "judge", breaks)
    monkeypatch.setattr(parallel, "available_processes", lambda: 0)  # others would not know of it
    done = call("analyze", stable, exploding)
    assert done.exit_code == 4
    assert f"{exploding}: exploding" in done.stdout
    assert f"{stable}: error: internal error: ZeroDivisionError" in done.stdout
    assert "--debug" in done.stdout
    assert "Traceback" not in done.output
    assert "Traceback" in call("analyze", stable, exploding, "--debug").stderr


def test_ctrl_c_ends_quietly(call: Call, stable: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "analyze_paths", interrupted)
    done = call("analyze", stable)
    assert done.exit_code == 130
    assert done.output.strip() == ""
