"""Standard streams that are closed, full or broken: a clear exit code, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GRADTREND = f"{sys.executable} -m gradtrend"
pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a POSIX shell and /dev/full")


def run(line: str) -> tuple[int, str]:
    """The exit code of a shell line and what came on standard error."""
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", ["analyze {}", "analyze {} --format json", "series {}", "rule"])
@pytest.mark.parametrize(
    ("streams", "said"),
    [
        (">&-", "gradtrend: standard output is closed\n"),
        (">&- 2>&-", ""),
        (">/dev/full 2>/dev/full", ""),
        ("1</dev/null", "gradtrend: standard output cannot be written (Bad file descriptor)\n"),
    ],
)
def test_an_output_that_cannot_be_written_is_exit_2(exploding: Path, words: str, streams: str, said: str) -> None:
    assert run(f"{GRADTREND} {words.format(exploding)} {streams}") == (2, said)


@pytest.mark.parametrize("streams", ["<&-", "2>&-", "2>/dev/full"])
def test_streams_that_are_not_needed_may_be_closed(exploding: Path, streams: str) -> None:
    assert run(f"{GRADTREND} analyze {exploding} {streams}") == (1, "")


@pytest.mark.parametrize(
    ("words", "code"), [("analyze nosuch --format json", 3), ("analyze --nosuch", 2), ("replay nosuch", 3)]
)
@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full"])
def test_what_cannot_be_told_still_has_its_exit_code(words: str, code: int, streams: str) -> None:
    assert run(f"{GRADTREND} {words} {streams}")[0] == code


def test_help_on_a_full_disk() -> None:
    code, said = run(f"{GRADTREND} --help > /dev/full")
    assert code == 2
    assert said == "gradtrend: standard output cannot be written (No space left on device)\n"


def test_an_output_file_on_a_full_disk(exploding: Path) -> None:
    code, said = run(f"{GRADTREND} analyze {exploding} -o /dev/full")
    assert (code, said) == (2, "gradtrend: -o /dev/full: cannot be written (No space left on device)\n")


def test_an_output_file_that_is_a_closed_pipe(exploding: Path) -> None:
    line = f"{GRADTREND} analyze {exploding} -o /dev/stdout | true; exit ${{PIPESTATUS[0]}}"
    assert run(line) == (1, "")


def test_standard_input_that_is_closed() -> None:
    code, said = run(f"{GRADTREND} analyze - --format json <&-")
    assert code == 3
    assert "standard input is closed" in said
