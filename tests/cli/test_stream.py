"""Standard output that takes less than it is given: the report is whole, or the exit code says that it is not."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

GRADTREND = [sys.executable, "-m", "gradtrend"]


def _slowly(reader: int, into: list[bytes]) -> None:
    while piece := os.read(reader, 1000):
        into.append(piece)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("words", [("rule", "--format", "json"), ("analyze", "--help")])
def test_a_slow_pipe_gets_all(unbuffered: str, waits: bool, words: tuple[str, ...]) -> None:
    """More than a pipe holds, through one that lets its writer wait or does not."""
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    whole = subprocess.run([*GRADTREND, *words], capture_output=True, check=True, env=environment).stdout
    reader, writer = os.pipe()
    os.set_blocking(writer, waits)
    got: list[bytes] = []
    with subprocess.Popen([*GRADTREND, *words], stdout=writer, env=environment) as process:
        os.close(writer)
        thread = threading.Thread(target=_slowly, args=(reader, got))
        thread.start()
        code = process.wait(60)
        thread.join(60)
    os.close(reader)
    assert (code, b"".join(got)) == (0, whole)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs limits of POSIX")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["rule"], ["rule", "--format", "json"], ["--help"]])
def test_a_disk_that_becomes_full_is_never_a_success(tmp_path: Path, unbuffered: str, words: list[str]) -> None:
    """A file that may have no more than 100 bytes takes these: the write after that is the one that fails."""
    code = (
        "import resource, signal, sys\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\nfrom gradtrend.cli import main\nmain(sys.argv[1:])"
    )
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )
    assert (tmp_path / "out").stat().st_size == 100
    assert (done.returncode, done.stderr) == (2, "gradtrend: standard output cannot be written (File too large)\n")
