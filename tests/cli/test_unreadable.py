"""Paths that cannot be read among several: each is a failure of its own, or is told, and loses no other."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from tests.places import EXPLODING
from tests.processes import python, without_override

Call = Callable[..., Result]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
LOG = EXPLODING / "metrics.jsonl"


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Path]:
    """`good/` is a run, `locked/` a folder and `half/metrics.jsonl` a file that may not be read."""
    root = tmp_path / "runs"
    for name in ("good", "locked", "half"):
        (root / name).mkdir(parents=True)
        shutil.copyfile(LOG, root / name / LOG.name)
    (root / "locked").chmod(0)
    (root / "half" / LOG.name).chmod(0)
    yield root
    (root / "locked").chmod(0o700)


def analyzed(*words: object) -> tuple[int, list[str], dict[str, str]]:
    """The exit code, the runs that were judged, and the failures."""
    done = without_override("-m", "gradtrend", "analyze", *words, "--format", "json", "--fail-on", "never")
    assert "Traceback" not in done.stderr
    found = json.loads(done.stdout)
    failures = {failure["path"]: failure["message"] for failure in found["failures"]}
    return done.returncode, [run["run"] for run in found["runs"]], failures


def test_a_folder_and_a_file_that_were_given(runs: Path) -> None:
    good, locked, half = runs / "good", runs / "locked", runs / "half" / LOG.name
    code, judged, failures = analyzed(locked, good, half)
    assert (code, judged) == (3, [str(good)])
    assert set(failures) == {str(locked), str(half)}
    assert all("Permission denied" in message for message in failures.values())


def test_below_a_folder_that_was_given(runs: Path) -> None:
    code, judged, failures = analyzed(runs)
    assert (code, judged) == (3, [str(runs / "good")])
    assert set(failures) == {str(runs / "half"), str(runs / "locked")}


@pytest.mark.parametrize("command", ["analyze", "series", "replay"])
def test_alone(runs: Path, command: str) -> None:
    done = without_override("-m", "gradtrend", command, runs / "locked")
    assert done.returncode == 3
    assert "Permission denied" in done.stdout + done.stderr
    assert "Usage" not in done.stderr


def strange(folder: Path) -> list[Path]:
    """Paths at which there is nothing to be read."""
    (folder / "circle").symlink_to("circle")
    (folder / "nowhere").symlink_to("nothing")
    with socket.socket(socket.AF_UNIX) as door:
        at = os.getcwd()  # noqa: PTH109  its address may be no longer than 108 bytes
        os.chdir(folder)
        door.bind("socket")
        os.chdir(at)
    names = ("circle", "nowhere", "socket", "none", "a" * 300, "/".join(["a" * 200] * 30))
    return [*(folder / name for name in names), LOG / "below", Path(os.devnull)]


def test_paths_at_which_nothing_is(call: Call, tmp_path: Path, stable: Path) -> None:
    paths = strange(tmp_path)
    done = call("analyze", *paths[:4], stable, *paths[4:], "--format", "json")
    found = json.loads(done.stdout)
    assert done.exit_code == 3
    assert [run["run"] for run in found["runs"]] == [str(stable)]
    assert [failure["path"] for failure in found["failures"]] == [str(path) for path in paths]


@pytest.mark.parametrize("command", ["analyze", "series", "replay"])
def test_each_of_them_alone(call: Call, tmp_path: Path, command: str) -> None:
    for path in strange(tmp_path):
        assert call(command, path).exit_code == 3, path


def test_each_of_them_as_a_folder_of_rules(call: Call, tmp_path: Path) -> None:
    for path in strange(tmp_path):
        done = call("rule", "--rules", path)
        assert done.exit_code == 2, path
        assert "--rules" in done.stderr


def test_a_folder_of_rules_that_may_not_be_looked_into(runs: Path) -> None:
    code = "import sys, gradtrend; gradtrend.analyze(sys.argv[1], rules_dir=sys.argv[2])"
    done = without_override("-c", code, runs / "good", runs / "locked")
    assert "ConfigError: --rules" in done.stderr
    assert "Permission denied" in done.stderr


def test_a_working_folder_that_was_deleted(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = "import os, sys; os.rmdir(os.getcwd()); from gradtrend.cli import main; main(sys.argv[1:])"
    done = python("-c", code, "analyze", EXPLODING, folder=gone)
    assert done.returncode == 2
    assert "working folder does not exist any more" in done.stderr
