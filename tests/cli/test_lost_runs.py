"""One run never loses another, whatever becomes of the process that reads it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.processes import python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a fork knows what the test has put in")
ROW = '{{"step": {}, "grad_norm": {}, "loss": {}}}\n'
DEADLY = """
import os, signal, sys
from gradtrend.cli import main
from gradtrend.ingest.runs.finding.tree import LogFile
read = LogFile.read
def reads(self, options):
    if "bad" in self.path.name:
        end = self.path.stem.split("-")[1]
        if end == "memory":
            raise MemoryError
        if end == "recursion":
            raise RecursionError
        if end == "panic":
            raise type("PanicException", (BaseException,), {})("index out of bounds")
        if end == "error":
            raise ZeroDivisionError
        if end == "exit":
            os._exit(1)
        os.kill(os.getpid(), int(end))
    yield from read(self, options)
LogFile.read = reads
main(sys.argv[1:])
"""
ENDS = {
    "9": "the process that read it was killed (signal 9): out of memory?",
    "7": "the process that read it was killed (signal 7): was the file cut while it was read?",
    "11": "the process that read it was killed (signal 11)",
    "exit": "the process that read it ended (exit code 1): out of memory?",
    "memory": "there was not enough memory to read it",
    "recursion": "it is nested too deep",
    "panic": "internal error: PanicException: index out of bounds",
    "error": "internal error: ZeroDivisionError: ",
}


def logs(folder: Path, *names: str) -> list[Path]:
    paths = [folder / name for name in names]
    for number, path in enumerate(paths, start=1):  # no two of one fit
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(ROW.format(i, number + i % 2 / 10, 2 - i / 100 - number / 7) for i in range(100)))
    return paths


def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert "Traceback" not in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("end", ENDS)
def test_paths_beside_one_that_kills(tmp_path: Path, end: str) -> None:
    paths = logs(tmp_path, "a.jsonl", f"bad-{end}.jsonl", "c.jsonl")
    done = python("-c", DEADLY, "analyze", *paths, "--format", "json")
    found = report(done)
    assert [run["run"] for run in found["runs"]] == [str(paths[0]), str(paths[2])]
    assert {run["verdict"] for run in found["runs"]} == {"stable"}
    ((failure),) = found["failures"]
    assert (failure["path"], failure["message"]) == (str(paths[1]), ENDS[end])
    assert done.returncode == (4 if end in ("panic", "error") else 3)


@pytest.mark.parametrize("end", ["9", "memory", "error"])
@pytest.mark.parametrize("command", ["analyze", "series"])
def test_runs_of_a_folder_that_are_read_together(tmp_path: Path, end: str, command: str) -> None:
    *_, bad = logs(tmp_path, "a/metrics.jsonl", "b/metrics.jsonl", "z/metrics.jsonl", f"c/bad-{end}.jsonl")
    done = python("-c", DEADLY, command, tmp_path, "--format", "json")
    found = report(done)
    assert done.returncode == (4 if end == "error" else 3)
    assert [run["run"] for run in found["runs"]] == [str(tmp_path / name) for name in "abz"]
    assert f"{bad}: {ENDS[end]}" in done.stderr


@pytest.mark.parametrize("end", ["memory", "error"])
def test_logs_of_one_run_beside_one_that_cannot_be_read(tmp_path: Path, end: str) -> None:
    """In the one process."""
    log, bad = logs(tmp_path, "metrics.jsonl", f"bad-{end}.csv")
    bad.write_text("step,grad_norm\n1,2\n2,3\n")
    done = python("-c", DEADLY, "analyze", tmp_path, "--format", "json")
    found = report(done)
    assert [source["path"] for source in found["runs"][0]["sources"]] == [log.name]
    assert [failure["path"] for failure in found["failures"]] == [str(bad)]


def test_many_runs_on_several_processes(tmp_path: Path) -> None:
    logs(tmp_path, *(f"r{i:03d}/{'bad-9' if i in (7, 77) else 'metrics'}.jsonl" for i in range(200)))
    many = DEADLY.replace("main(", "from gradtrend.pipeline import parallel\nparallel.LEAST_SECONDS = 0\nmain(", 1)
    done = python("-c", many, "analyze", tmp_path, "--format", "json")
    found = report(done)
    assert [run["run"][-4:] for run in found["runs"]] == [f"r{i:03d}" for i in range(200) if i not in (7, 77)]
    assert [failure["path"][-4:] for failure in found["failures"]] == ["r007", "r077"]
    assert done.returncode == 3
