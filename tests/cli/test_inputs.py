"""`-o` onto what is read is refused before any work, by whatever name; a report beside it is not."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.places import EXPLODING

Call = Callable[..., Result]
LOG = "metrics.jsonl"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder that may be written to."""
    shutil.copytree(EXPLODING, tmp_path / "run")
    return tmp_path / "run"


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(call: Call, folder: Path, *words: object) -> bool:
    """Whether a call is refused, before any work, and changes nothing."""
    before = contents(folder)
    done = call(*words)
    assert contents(folder) == before
    assert done.stdout == ""
    return done.exit_code == 2 and "gradtrend: -o " in done.stderr and "Traceback" not in done.stderr


def test_a_log_that_was_given(call: Call, run: Path) -> None:
    assert refused(call, run, "analyze", run / LOG, "-o", run / LOG)
    assert refused(call, run, "analyze", run / LOG, "-o", run / ".." / run.name / LOG)


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_log_by_another_name(call: Call, run: Path, tmp_path: Path, link: str) -> None:
    other = tmp_path / "report.txt"
    getattr(other, link)(run / LOG)
    assert refused(call, tmp_path, "analyze", run / LOG, "-o", other)
    assert refused(call, tmp_path, "analyze", other, "-o", run / LOG)
    assert refused(call, tmp_path, "analyze", run, "-o", other)


def test_each_log_of_a_folder(call: Call, run: Path) -> None:
    logs = [path for path in run.iterdir() if path.suffix != ".md"]
    assert len(logs) > 3
    for log in logs:
        assert refused(call, run, "analyze", run.parent, "-o", log), log


def test_a_database_and_what_belongs_to_it(call: Call, tmp_path: Path) -> None:
    database = tmp_path / "mlflow.db"
    shutil.copyfile(EXPLODING / "mlflow.db", database)
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE more (x)")
    connection.commit()
    for name in ("mlflow.db", "mlflow.db-wal", "mlflow.db-shm"):
        assert (tmp_path / name).exists()
        assert refused(call, tmp_path, "analyze", database, "-o", tmp_path / name)
        assert refused(call, tmp_path, "analyze", f"sqlite:///{database}", "-o", tmp_path / name)
    connection.close()


@pytest.mark.parametrize("name", ["hparams.yaml", "args.json", "best.ckpt"])
def test_files_of_the_run_that_are_no_logs(call: Call, run: Path, name: str) -> None:
    (run / name).write_text("{}")
    assert refused(call, run, "analyze", run, "-o", run / name)


def test_a_rule_file(call: Call, run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "GT101.toml").write_text(call("rule", "GT101", "--format", "toml").stdout)
    assert refused(call, tmp_path, "analyze", run, "--rules", folder, "-o", folder / "GT101.toml")


def test_a_log_on_standard_input(run: Path) -> None:
    before = (run / LOG).read_bytes()
    with (run / LOG).open("rb") as log:
        words = [sys.executable, "-m", "gradtrend", "analyze", "-", "-o", str(run / LOG)]
        done = subprocess.run(words, stdin=log, capture_output=True, text=True, check=False)
    assert (run / LOG).read_bytes() == before
    assert done.returncode == 2
    assert "standard input" in done.stderr


def test_a_capture(call: Call, tmp_path: Path) -> None:
    capture = tmp_path / "run" / "debug" / "step7.gradtrend.pt"
    capture.parent.mkdir(parents=True)
    capture.write_bytes(b"no capture, and not for us to replace")
    for given in (capture, tmp_path / "run", tmp_path):
        assert refused(call, tmp_path, "replay", given, "-o", capture)


def test_a_report_beside_the_logs_is_written_and_replaced(call: Call, run: Path) -> None:
    for name in ("report.json", "report.txt"):
        for _ in range(2):
            done = call("analyze", run, "--format", "json", "-o", run / name)
            assert (done.exit_code, done.stderr) == (1, "")
            assert (run / name).read_text().startswith("{")


def test_standard_output_by_its_usual_name(
    call: Call, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("analyze", run, "-o", "-").stdout == call("analyze", run).stdout
    assert not os.path.lexists("-")
