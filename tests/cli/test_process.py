"""The command as the shell sees it: pipes, signals, terminals, encodings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

GRADTREND = [sys.executable, "-m", "gradtrend"]
SLOW = """
import time
from gradtrend.pipeline import analyze
from gradtrend.cli import main
def wait(*_):
    print("ready", flush=True)
    time.sleep(60)
analyze.analyze_paths = wait
main(["analyze", "x"])
"""


def _on_terminal(words: list[str], **env: str) -> bytes:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    kept = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    subprocess.run([*GRADTREND, *words], stdout=theirs, env=kept | {"TERM": "xterm"} | env, check=False)
    os.close(theirs)
    chunks = []
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # Linux: the other end is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(ours)
    return b"".join(chunks)


def test_the_installed_command_and_the_module_are_one(exploding: Path) -> None:
    script = Path(sys.executable).with_name("gradtrend")
    if not script.exists():
        pytest.skip("gradtrend is not installed in this environment")
    words = ["analyze", str(exploding)]
    done = [subprocess.run([*command, *words], capture_output=True, check=False) for command in ([script], GRADTREND)]
    assert done[0].stdout == done[1].stdout
    assert done[0].returncode == done[1].returncode == 1


@pytest.mark.parametrize("words", [["analyze"], ["analyze", "--format", "json"]])
def test_a_closed_pipe_ends_quietly_with_the_verdicts_code(exploding: Path, words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*GRADTREND, *words, str(exploding)], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


def test_help_into_a_closed_pipe() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*GRADTREND, "--help"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said_in_one_line(exploding: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*GRADTREND, "analyze", str(exploding)], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["gradtrend: standard output cannot be written (No space left on device)"]


def test_ctrl_c_ends_quietly_with_130() -> None:
    with subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert errors.strip() == b""


def test_colour_on_a_terminal_and_never_with_no_color(exploding: Path) -> None:
    words = ["analyze", str(exploding)]
    assert b"\x1b[" in _on_terminal(words)
    assert b"\x1b[" not in _on_terminal(words, NO_COLOR="1")
    assert b"\x1b[" not in _on_terminal(words, TERM="dumb")
    assert b"\x1b[" not in subprocess.run([*GRADTREND, *words], capture_output=True, check=False).stdout


def test_an_ascii_terminal_gets_ascii(exploding: Path) -> None:
    env = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*GRADTREND, "analyze", str(exploding)], capture_output=True, env=env, check=False)
    assert done.returncode == 1
    assert b"exploding" in done.stdout
    assert b"\\u" not in done.stdout
    done.stdout.decode("ascii")


def test_a_path_that_is_no_utf8(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/run\xff"
    done = subprocess.run([*map(os.fsencode, GRADTREND), b"analyze", name], capture_output=True, check=False)
    assert done.returncode == 3
    assert rb"run\xff" in done.stdout
