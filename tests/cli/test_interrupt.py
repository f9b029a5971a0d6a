"""Ctrl-C and termination at any moment: their exit codes, no traceback, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import LIGHTLY
from tests.processes import SOURCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
INTERRUPTS = """
import importlib.util, os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), getattr(signal, os.environ["SIGNAL"]))
sys.meta_path.insert(0, Finder())
"""


def call_with(tmp_path: Path, at: str, by: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, to which a signal comes when it imports a module."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(INTERRUPTS)
    paths = os.pathsep.join([str(folder), str(SOURCE)])
    environment = os.environ | {"PYTHONPATH": paths, "AT": at, "SIGNAL": by, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "gradtrend", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


# From the first module of the package on, through what takes longest, to the last that a report needs.
@pytest.mark.parametrize(
    "module",
    [
        "inspect",
        "gradtrend.errors",
        "gradtrend.model.report",
        "gradtrend.cli",
        "click",
        "gradtrend.cli.main",
        "gradtrend.cli.analyze",
        "polars",
        "polars._plr",
        "numpy",
        "numpy.linalg",
        "gradtrend.detect.judge",
        "gradtrend.ingest.formats.jsonl.reader",
        "gradtrend.report.text.report",
    ],
)
def test_ctrl_c_while_it_loads(tmp_path: Path, module: str) -> None:
    log = LIGHTLY / "exploding_lr_nan" / "metrics.jsonl"
    done = call_with(tmp_path, module, "SIGINT", "analyze", str(log))
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")


def test_a_program_that_imports_the_package_keeps_its_own_ctrl_c(tmp_path: Path) -> None:
    code = (
        "import signal, gradtrend, gradtrend.cli\nassert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    )
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(SOURCE)}, check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="a fork tells of itself to the test")
def test_termination_leaves_neither_processes_nor_files(tmp_path: Path) -> None:
    """While another process has just begun to read: with its own temporary folder."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    code = f"""
import os, sys, tempfile, time
from gradtrend.cli import main
from gradtrend.ingest.runs.finding.tree import LogFile
def waits(self, options):
    with tempfile.TemporaryDirectory():
        print(os.getpid(), flush=True)
        time.sleep(60)
        yield
LogFile.read = waits
main(["analyze", {str(LIGHTLY)!r}])
"""
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as call:
        assert call.stdout is not None
        reader = int(call.stdout.readline())
        assert reader != call.pid
        call.send_signal(signal.SIGTERM)
        assert call.wait(30) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(reader, 0)
    assert not list(temporary.iterdir())
