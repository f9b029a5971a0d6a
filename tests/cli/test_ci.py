"""Reports for CI, called as a job calls them: they agree with the exit code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import Result

from tests.places import EXPLODING
from tests.report.ci.fitting import fits_gitlab, fits_junit, fits_sarif

Call = Callable[..., Result]
FORMATS = ("junit", "sarif", "github", "gitlab", "markdown")


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with an exploding run."""
    folder = tmp_path / "project"
    shutil.copytree(EXPLODING, folder / "out" / "run")
    (folder / "train.yaml").write_text("lr: 3\n")
    monkeypatch.chdir(folder)
    return folder


def fails(format_: str, text: str) -> bool:
    """Whether a report says that something failed."""
    if format_ == "junit":
        suites = ElementTree.fromstring(text)
        return suites.attrib["failures"] != "0" or suites.attrib["errors"] != "0"
    if format_ == "sarif":
        run = json.loads(text)["runs"][0]
        told = run["invocations"][0].get("toolExecutionNotifications", [])
        return any(one["properties"]["fails"] for one in run["results"]) or any(one["level"] == "error" for one in told)
    if format_ == "gitlab":
        return any(one["severity"] == "blocker" for one in json.loads(text))
    return text.startswith(("::error", "### gradtrend: failed"))


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--fail-on", "sick"),
        ("--fail-on", "never"),
        ("--fail-on", "GT5"),
        ("--fail-on", "info"),
        ("--allow-undetermined",),
        ("--allow-undetermined", "--fail-on", "never"),
        ("--ignore", "GT1,GT2"),
    ],
    ids=" ".join,
)
def test_each_format_agrees_with_the_exit_code(
    call: Call, exploding: Path, stable: Path, short: Path, format_: str, options: tuple[str, ...]
) -> None:
    for paths in ((exploding,), (stable,), (short,), (exploding, stable, short, "gone"), (stable, "gone")):
        done = call("analyze", *paths, "--format", format_, *options)
        assert done.exit_code in (0, 1, 3)
        assert fails(format_, done.stdout) == (done.exit_code != 0), done.stdout


def test_sick_is_every_way_to_be_sick(call: Call, exploding: Path, stable: Path) -> None:
    assert call("analyze", exploding, "--fail-on", "sick").exit_code == 1
    assert call("analyze", stable, "--fail-on", "sick").exit_code == 0
    assert call("analyze", exploding, "--fail-on", "sick", "--ignore", "GT101,GT201").exit_code == 0
    assert call("analyze", exploding, "--fail-on", "sik").exit_code == 2


def fits(format_: str, text: str) -> None:
    """Raise unless a report is what its readers demand."""
    check = {"junit": fits_junit, "sarif": fits_sarif, "gitlab": fits_gitlab}.get(format_)
    if check is not None:
        check(text)
    elif format_ == "github":
        assert all(
            line.startswith(("::error ", "::warning ", "::notice ", "gradtrend: ")) for line in text.splitlines()
        )
    else:
        assert "| run | verdict |" in text


@pytest.mark.parametrize("format_", FORMATS)
def test_each_format_of_real_runs_is_what_its_readers_demand(
    call: Call, exploding: Path, stable: Path, short: Path, tmp_path: Path, format_: str
) -> None:
    fits(format_, call("analyze", exploding, stable, short, "gone", "--format", format_).stdout)
    for place in range(12):
        norms = [1.0 + place / 100] * 30 + [10.0 ** (k / 2) for k in range(15) if place % 2]
        rows = [f'{{"step": {step}, "grad_norm": {norm}, "loss": 2}}\n' for step, norm in enumerate(norms)]
        folder = tmp_path / "runs" / str(place)
        folder.mkdir(parents=True)
        (folder / "metrics.jsonl").write_text("".join(rows))
    fits(format_, call("analyze", tmp_path / "runs", "--format", format_).stdout)


@pytest.mark.parametrize("format_", FORMATS)
def test_no_absolute_path_of_a_log_below_the_working_folder(call: Call, project: Path, format_: str) -> None:
    relative = call("analyze", "out/run", "--format", format_).stdout
    assert str(project) not in relative
    if format_ in ("sarif", "gitlab"):
        absolute = call("analyze", project / "out" / "run", "--format", format_).stdout
        key = "partialFingerprints" if format_ == "sarif" else "fingerprint"

        def marks(text: str) -> list[str]:
            return [
                line for before, line in zip(text.splitlines(), text.splitlines()[1:], strict=False) if key in before
            ]

        assert marks(absolute) == marks(relative) != []


def test_an_anchor_is_where_findings_are_told(call: Call, project: Path) -> None:
    out = call("analyze", "out/run", "--format", "github", "--anchor", "train.yaml:1").stdout
    assert out.startswith("::error file=train.yaml,line=1,title=GT101 exploding%3A out/run (exploding_lr_nan)::")
    whole = call("analyze", "out/run", "--format", "gitlab", "--anchor", project / "train.yaml").stdout
    assert json.loads(whole)[0]["location"] == {"path": "train.yaml", "lines": {"begin": 1}}


@pytest.mark.parametrize(
    "anchor",
    [
        "gone.yaml",
        "x" * 300,
        f"a:{'9' * 5000}",
        "train.yaml:0",
        "train.yaml:x",
        "",
        "out",
        str(EXPLODING / "metrics.jsonl"),
    ],
)
def test_an_anchor_that_is_no_file_of_the_project_is_refused(call: Call, project: Path, anchor: str) -> None:
    done = call("analyze", "out/run", "--anchor", anchor)
    assert done.exit_code == 2
    assert "--anchor" in done.stderr


def test_the_summary_of_a_job_is_added_to(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = project / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    call("analyze", "out/run", "--format", "json")
    assert summary.read_text() == "before\n"
    assert call("analyze", "out/run", "--format", "github").stdout.startswith("::error ")
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("before\n### gradtrend: failed")
    assert text == "before\n" + call("analyze", "out/run", "--format", "markdown").stdout


def test_a_summary_that_cannot_be_written_changes_nothing_else(
    call: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project))
    done = call("analyze", "out/run", "--format", "github")
    assert done.exit_code == 1
    assert "GITHUB_STEP_SUMMARY" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="names that Windows has not")
@pytest.mark.parametrize("format_", FORMATS)
def test_hostile_names_of_logs(call: Call, tmp_path: Path, format_: str) -> None:
    """Names as a file system and a log can hold them, through the whole program, onto a pipe of UTF-8."""
    names = ["a\nb::error::x", "]]>&<\"'", "`|`*_[x](y)@z%0A", os.fsdecode(b"\xff\xfe"), "\x1b[31m\u2028\u202e"]
    for name in names:
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        key = json.dumps(f"grad_norm/{name}")
        rows = [f'{{"step": {i}, {key}: {1.0 if i < 30 else 10.0 ** (i - 29)}, "loss": 2}}\n' for i in range(40)]
        (folder / "metrics.jsonl").write_text("".join(rows))
    done = call("analyze", tmp_path / "runs", "--format", format_, "--metric", "none", "--fail-on", "never")
    assert done.exit_code == 3
    words = [sys.executable, "-m", "gradtrend", "analyze", tmp_path / "runs", "--format", format_]
    done_apart = subprocess.run(words, capture_output=True, check=False)
    text = done_apart.stdout.decode("utf-8")
    assert done_apart.returncode in (1, 3), done_apart.stderr
    assert fails(format_, text)
    assert "\x1b" not in text
    assert "\u2028" not in text


def test_a_report_never_replaces_the_known_findings(call: Call, project: Path) -> None:
    known = project / "known.json"
    assert call("analyze", "out/run", "--write-baseline", known).exit_code in (0, 1)
    before = known.read_bytes()
    for words in (["--baseline", known, "-o", known], ["--write-baseline", "new.json", "-o", project / "new.json"]):
        done = call("analyze", "out/run", *words)
        assert done.exit_code == 2
        assert "holds the known findings" in done.stderr
    assert known.read_bytes() == before


def test_a_job_summary_that_is_a_pipe_is_not_waited_for(
    call: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(project / "pipe")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project / "pipe"))
    assert call("analyze", "out/run", "--format", "github").exit_code in (0, 1)
