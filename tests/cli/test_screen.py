"""What a screen is given: colour, width, rows while the work goes on, and what Ctrl-C leaves."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gradtrend.report.wording.width import width_of
from tests.ingest.runs.writers import fit, jsonl
from tests.places import EXPLODING
from tests.processes import SOURCE

Call = Callable[..., Result]
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(
    *words: object, columns: int = 80, rows: int = 24, until: bytes | None = None, **variables: str
) -> tuple[int, str]:
    """The exit code and all that a terminal of that size is shown; with `until` SIGINT is sent when that is shown."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    environment = kept | {"PYTHONPATH": str(SOURCE), "TERM": "xterm"} | variables
    command = [sys.executable, "-m", "gradtrend", *map(str, words)]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    shown, deadline = b"", time.monotonic() + 120
    while time.monotonic() < deadline:
        if not select.select([ours], [], [], 0.1)[0]:
            continue
        try:
            piece = os.read(ours, 65536)
        except OSError:  # closed by its last holder
            break
        if not piece:
            break
        shown += piece
        if until is not None and until in shown:
            os.killpg(process.pid, signal.SIGINT)
            until = None
    os.close(ours)
    return process.wait(60), shown.decode().replace("\r\n", "\n")


def tree(folder: Path, count: int) -> Path:
    """So many copies of a run that explodes."""
    log = (EXPLODING / "metrics.jsonl").read_bytes()
    for i in range(count):
        (folder / f"lr{i // 100}" / f"seed{i}").mkdir(parents=True)
        (folder / f"lr{i // 100}" / f"seed{i}" / "metrics.jsonl").write_bytes(log)
    return folder


@pytest.mark.parametrize(
    ("words", "variables", "coloured"),
    [
        ([], {}, False),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "0"}, False),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_off_a_terminal(
    call: Call,
    exploding: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    variables: dict[str, str],
    coloured: bool,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in call("analyze", exploding, *words).stdout) is coloured


def test_colour_and_width_of_a_terminal(tmp_path: Path) -> None:
    long = tmp_path / ("学習_" * 30)
    for seed in (1, 2):
        jsonl(long / f"{seed}{'x' * 90}" / "metrics.jsonl", fit("exploding", seed))
    for columns in (80, 120):
        code, shown = on_terminal("analyze", long, columns=columns)
        assert code == 1
        assert "\x1b[31mexploding" in shown
        rows = [line for line in _ANSI.sub("", shown).split("\n") if line.startswith(("exploding", "verdict"))]
        assert len(rows) == 3
        assert max(map(width_of, rows)) <= columns
    assert "\x1b[" not in on_terminal("analyze", EXPLODING, NO_COLOR="1")[1]
    assert "\x1b[" not in on_terminal("analyze", EXPLODING, TERM="dumb")[1]


def test_columns_are_those_that_are_said(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, letter in enumerate("ab"):
        jsonl(tmp_path / (letter * 100) / "metrics.jsonl", fit("exploding", seed))
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = call("analyze", tmp_path).stdout.splitlines()
    assert any(line.endswith("a" * 100) for line in whole)
    monkeypatch.setenv("COLUMNS", "90")
    rows = [line for line in call("analyze", tmp_path).stdout.splitlines() if line.startswith("exploding")]
    assert [width_of(row) for row in rows] == [90, 90]
    monkeypatch.setenv("COLUMNS", "nonsense")
    assert call("analyze", tmp_path).stdout.splitlines() == whole


def test_rows_come_while_runs_are_judged_and_the_table_behind_them(tmp_path: Path) -> None:
    code, shown = on_terminal("analyze", tree(tmp_path, 400), columns=100)
    lines = [line.rsplit("\r")[-1] for line in _ANSI.sub("", shown).split("\n")]  # a bar stood before some
    assert code == 1
    middle = lines.index("To look at, the worst first")
    for part in (lines[:middle], lines[middle:]):
        assert sum(line.startswith("exploding") and "/seed" in line for line in part) == 400
    assert "400 runs: 400 exploding" in shown


def test_ctrl_c_shows_what_is_done(tmp_path: Path) -> None:
    code, shown = on_terminal("analyze", tree(tmp_path, 1500), columns=100, until=b"seed20")
    assert code == 130
    assert "Traceback" not in shown
    found = re.search(r"^(\d+) runs: (\d+) exploding", shown, re.MULTILINE)
    assert found is not None
    assert found[1] == found[2]
    assert 0 < int(found[1]) < 1500
    assert "interrupted; runs judged: " + found[1] in shown
    assert shown.count("\x1b[?25l") <= shown.count("\x1b[?25h")  # no cursor stays hidden


def test_ctrl_c_leaves_files_as_they_were(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    runs = tree(tmp_path / "runs", 1500)
    code, _ = on_terminal("analyze", runs, "-o", target, "-o", "-", until=b"Judging")
    assert code == 130
    assert target.read_text() == "old"


def test_no_bar_off_a_terminal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gradtrend", "analyze", str(tree(tmp_path, 300)), "-o", str(tmp_path / "r.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"FORCE_COLOR": "1"})
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == "300 runs: 300 exploding; 600 errors\n"
