"""A scan by a program starts processes by itself only where none of them runs the program's script again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.scan.scans import runs
from tests.processes import SOURCE

COUNT = 9
_THREAD = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
_POLARS = "import polars\npolars.DataFrame({'a': range(100_000)}).sort('a').group_by('a').len()\n"
_SCRIPT = """
import os
copies = []
os.register_at_fork(after_in_parent=lambda: copies.append(1))
print("begun", flush=True)
{before}
import gradtrend
print(len(gradtrend.scan({root!r}{given})), "runs", bool(copies), flush=True)
"""


def _called(folder: Path, before: str = "", given: str = "") -> subprocess.CompletedProcess[str]:
    """A script without a guard that scans."""
    root = str(runs(folder / "runs", COUNT))
    script = folder / "script.py"
    script.write_text(_SCRIPT.format(before=before, root=root, given=given))
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=True, timeout=60
    )


@pytest.mark.parametrize("before", [_THREAD, _POLARS], ids=["thread", "polars"])
def test_a_script_that_cannot_be_copied_runs_once(tmp_path: Path, before: str) -> None:
    done = _called(tmp_path, before)
    assert (done.stdout, done.stderr) == (f"begun\n{COUNT} runs False\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")
def test_a_script_that_can_be_copied_is_and_runs_once(tmp_path: Path) -> None:
    done = _called(tmp_path)
    assert (done.stdout, done.stderr) == (f"begun\n{COUNT} runs True\n", "")


def test_processes_that_are_asked_for_are_started(tmp_path: Path) -> None:
    done = _called(tmp_path, _THREAD, ", processes=2")
    assert done.stdout.count("begun\n") > 1
    assert done.stdout.endswith(f"{COUNT} runs False\n")
    assert "UnguardedScriptError" in done.stderr
