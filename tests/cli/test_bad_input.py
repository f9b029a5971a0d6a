"""Bad input: each one clear line and exit code 3, or a verdict with the damage listed; never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.places import EXPLODING

Call = Callable[..., Result]
GOOD = "".join(f'{{"step": {step}, "grad_norm": {1 + step % 2 / 10}, "loss": 1.0}}\n' for step in range(40))


def refused(done: Result, path: Path) -> str:
    """The one line in which the call says why nothing could be read."""
    assert done.exit_code == 3
    assert "Traceback" not in done.output
    assert "internal error" not in done.output
    lines = [line for line in done.output.splitlines() if "error: " in line]
    assert len(lines) == 1
    assert path.name in lines[0]
    return lines[0]


def run_of(done: Result) -> dict[str, Any]:
    report = json.loads(done.stdout)
    assert report["failures"] == []
    (run,) = report["runs"]
    assert isinstance(run, dict)
    return run


def rules_of(run: dict[str, Any]) -> set[str]:
    return {finding["rule"] for finding in run["findings"]}


def write(path: Path, data: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_a_missing_path(call: Call, tmp_path: Path) -> None:
    assert "no such file or folder" in refused(call("analyze", tmp_path / "gone"), tmp_path / "gone")


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "ftp://host/metrics.jsonl"])
def test_an_address_where_nothing_is(call: Call, address: str) -> None:
    refused(call("analyze", address), Path(address))


def test_an_empty_folder(call: Call, tmp_path: Path) -> None:
    done = call("analyze", tmp_path)
    assert "no log of a known format" in refused(done, tmp_path)
    assert "metrics.jsonl" in done.output


def test_a_folder_of_other_things(call: Call, tmp_path: Path) -> None:
    write(tmp_path / "model.pt", b"\x80\x02")
    write(tmp_path / "README.md", "a loss, a gradient norm")
    write(tmp_path / "src" / "train.py", "loss = 1\ngrad_norm = 2\n")
    assert "no log of a known format" in refused(call("analyze", tmp_path), tmp_path)


def test_an_empty_file(call: Call, tmp_path: Path) -> None:
    path = write(tmp_path / "metrics.jsonl", "")
    assert "the file is empty" in refused(call("analyze", path), path)
    assert "no log" in refused(call("analyze", tmp_path), tmp_path)


@pytest.mark.parametrize("data", [bytes(range(256)) * 50, b"\0" * 1000, b"\xff" * 100, b"\x1f\x8b\x08\0garbage"])
def test_binary_garbage_named_metrics_jsonl(call: Call, tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path / "metrics.jsonl", data)
    refused(call("analyze", path), path)
    refused(call("analyze", tmp_path), path)


def test_garbage_beside_a_good_log_is_told_and_the_log_judged(call: Call, tmp_path: Path) -> None:
    write(tmp_path / "metrics.jsonl", b"\xff\xfe\0\0" * 100)
    write(tmp_path / "log.jsonl", GOOD)
    run = run_of(call("analyze", tmp_path, "--format", "json"))
    assert run["verdict"] == "stable"
    (damage,) = [finding for finding in run["findings"] if finding["rule"] == "GT510"]
    assert "metrics.jsonl" in damage["message"]


def test_a_cut_line(call: Call, tmp_path: Path) -> None:
    path = write(tmp_path / "metrics.jsonl", GOOD[:-9])
    done = call("analyze", path, "--format", "json")
    run = run_of(done)
    assert (done.exit_code, run["verdict"]) == (0, "stable")
    assert run["sources"][0]["skipped"] == [{"line": 40, "offset": None, "reason": "truncated"}]
    assert "GT510" in rules_of(run)
    assert run["series"][0]["points"] == 39


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """A real event file of its own."""
    (source,) = EXPLODING.glob("events.*")
    return Path(shutil.copy(source, tmp_path))


def test_an_event_file_cut_inside_a_record(call: Call, events: Path) -> None:
    events.write_bytes(events.read_bytes()[:-11])
    done = call("analyze", events.parent, "--format", "json")
    run = run_of(done)
    assert (done.exit_code, run["verdict"]) == (1, "exploding")
    (skipped,) = run["sources"][0]["skipped"]
    assert "ends inside a record" in skipped["reason"]
    assert "GT510" in rules_of(run)


def test_an_event_file_with_a_flipped_byte(call: Call, events: Path) -> None:
    data = bytearray(events.read_bytes())
    data[len(data) // 2] ^= 0xFF
    events.write_bytes(data)
    done = call("analyze", events.parent, "--format", "json")
    run = run_of(done)
    assert (done.exit_code, run["verdict"]) == (1, "exploding")
    assert run["sources"][0]["skipped"]
    assert "GT510" in rules_of(run)


@pytest.mark.parametrize("at", [16, 100, 5000, 200_000])
def test_a_corrupt_sqlite_store(call: Call, tmp_path: Path, at: int) -> None:
    data = bytearray((EXPLODING / "mlflow.db").read_bytes())
    data[at : at + 60_000] = b"\xa5" * len(data[at : at + 60_000])
    path = write(tmp_path / "mlflow.db", bytes(data))
    done = call("analyze", path)
    assert "Traceback" not in done.output
    assert "internal error" not in done.output
    assert done.exit_code in (1, 3)  # damage behind the metrics' pages loses none of them
    if done.exit_code == 3 and "error: " in done.output:
        refused(done, path)


def test_a_sqlite_file_of_another_program(call: Call, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        database.execute("CREATE TABLE songs (title TEXT)")
    database.close()
    refused(call("analyze", tmp_path / "mlflow.db"), tmp_path / "mlflow.db")


def test_a_folder_without_read_permission(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = tmp_path / "locked"
    write(locked / "metrics.jsonl", GOOD)
    locked.chmod(0)
    try:
        if os.geteuid():
            done = call("analyze", locked)
        else:  # root reads everything: what the system says to others is said here
            real = os.scandir

            def denied(path: Any) -> Any:
                if Path(path) == locked:
                    raise PermissionError(13, "Permission denied", str(path))
                return real(path)

            monkeypatch.setattr(os, "scandir", denied)
            done = call("analyze", locked)
        assert "Permission denied" in refused(done, locked)
        write(tmp_path / "open" / "metrics.jsonl", GOOD)
        beside = call("analyze", tmp_path, "--format", "json")
        assert [run["run"] for run in json.loads(beside.stdout)["runs"]] == [str(tmp_path / "open")]
    finally:
        locked.chmod(0o755)


def test_a_log_without_read_permission(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "metrics.jsonl", GOOD)
    path.chmod(0)
    if not os.geteuid():
        real = os.open

        def denied(name: Any, *words: Any, **options: Any) -> int:
            if name == path:
                raise PermissionError(13, "Permission denied", str(path))
            return real(name, *words, **options)

        monkeypatch.setattr(os, "open", denied)
    assert "Permission denied" in refused(call("analyze", path), path)
    assert "Permission denied" in refused(call("analyze", tmp_path), path)


def test_a_log_without_a_gradient_norm(call: Call, tmp_path: Path) -> None:
    write(tmp_path / "metrics.jsonl", "".join(f'{{"step": {i}, "loss": 1.0}}\n' for i in range(30)))
    done = call("analyze", tmp_path, "-v")
    assert done.exit_code == 3
    assert "GT504" in done.output
    assert "clip_grad_norm_" in done.output


def test_two_points(call: Call, tmp_path: Path) -> None:
    write(tmp_path / "metrics.jsonl", '{"step": 0, "grad_norm": 1.0}\n{"step": 1, "grad_norm": 1.1}\n')
    done = call("analyze", tmp_path)
    assert done.exit_code == 3
    assert "GT503" in done.output


@pytest.mark.parametrize("written", ["NaN", '"nan"'])
def test_thirty_rows_of_nan_are_a_collapse(call: Call, tmp_path: Path, written: str) -> None:
    rows = "".join(f'{{"step": {step}, "grad_norm": {written}, "loss": {written}}}\n' for step in range(30))
    path = write(tmp_path / "metrics.jsonl", rows)
    done = call("analyze", path, "--format", "json")
    assert (done.exit_code, run_of(done)["verdict"]) == (1, "nan-collapse")


@pytest.mark.parametrize("words", [("--metric", "grad_nrm"), ("--loss", "los"), ("--lr", "learning")])
def test_a_name_that_is_not_logged(call: Call, tmp_path: Path, words: tuple[str, str]) -> None:
    write(tmp_path / "metrics.jsonl", GOOD.replace('"loss"', '"learning_rate": 0.1, "loss"'))
    done = call("analyze", tmp_path, *words)
    assert words[1] in refused(done, Path(words[1]))
    assert "Did you mean" in done.output


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_neither_file_nor_folder_is_passed_over(call: Call, tmp_path: Path) -> None:
    write(tmp_path / "metrics.jsonl", GOOD)
    os.mkfifo(tmp_path / "train.log")
    (tmp_path / "log.txt").symlink_to("gone")
    assert call("analyze", tmp_path).exit_code == 0


def test_damage_in_one_run_of_a_folder_loses_no_other(call: Call, tmp_path: Path) -> None:
    write(tmp_path / "a" / "metrics.jsonl", b"\0\1\2" * 100)
    write(tmp_path / "b" / "metrics.jsonl", GOOD)
    write(tmp_path / "c" / "mlflow.db", b"SQLite format 3\0" + b"\xff" * 4000)
    done = call("analyze", tmp_path, "--format", "json")
    report = json.loads(done.stdout)
    assert done.exit_code == 3
    assert [run["verdict"] for run in report["runs"]] == ["stable"]
    assert [failure["path"] for failure in report["failures"]] == [str(tmp_path / "a"), str(tmp_path / "c")]


def test_a_run_id_that_a_store_of_the_run_does_not_have(call: Call) -> None:
    done = call("analyze", EXPLODING, "--run-id", "nosuchrun")
    assert "nosuchrun" in refused(done, EXPLODING)


def test_the_shell_sees_one_line_and_no_traceback(tmp_path: Path) -> None:
    path = write(tmp_path / "metrics.jsonl", b"\xff" * 500)
    done = subprocess.run(
        [sys.executable, "-m", "gradtrend", "analyze", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr == ""
    assert done.stdout.splitlines()[0].startswith(f"{path}: error: ")
