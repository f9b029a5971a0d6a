"""Texts of rule files, paths and options may hold what a terminal would obey: it is shown as an escape everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Call = Callable[..., Result]
CONTROLS = {"ESC": r"\u001b[31m", "CSI": r"\u009b31m", "BELL": r"\u0007", "right to left": r"\u202e", "return": r"\r"}
RULE = """
id = "MY001"
name = "my@name"
severity = "warning"
summary = "sum@mary"
message = "mess@age {metric}"
help = "he@lp"
blind = "bli@nd"

[select]
role = "grad_norm"

[[when]]
measure = "decades_above_baseline"
above = 0.0
why = "wh@y"

[[action]]
text = "act@ion"
"""


def rules(folder: Path, control: str) -> Path:
    folder.mkdir()
    (folder / "mine.toml").write_text(RULE.replace("@", CONTROLS[control]))
    return folder


def is_safe(text: str) -> bool:
    """Whether there is nothing in a text but what is printed, and line breaks."""
    return all(char.isprintable() for char in text.replace("\n", ""))


@pytest.fixture(params=CONTROLS)
def mine(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return rules(tmp_path / "rules", request.param)


@pytest.mark.parametrize(
    "words",
    [
        ["rule"],
        ["rule", "--format", "json"],
        ["rule", "nosuch"],
        ["rule", "nosuch\x1b[31m"],
        ["analyze", "RUN", "-v"],
        ["analyze", "RUN", "--format", "json"],
        ["analyze", "RUN", "--fail-on", "nosuch\x1b"],
        ["analyze", "RUN", "--select", "nosuch\x9b1m"],
        ["analyze", "RUN", "--nosuch\x1b[31m"],
        ["analyze", "RUN", "nosuch\x1b[31m"],
        ["analyze", "RUN", "-o", "no\x1b[31m/such"],
        ["analyze", "RUN", "--format", "no\x1b[31msuch"],
        ["nosuch\x1b[31m"],
    ],
)
def test_nothing_that_a_terminal_would_obey_is_shown(call: Call, exploding: Path, mine: Path, words: list[str]) -> None:
    given = [str(exploding) if word == "RUN" else word for word in words]
    done = call(*given, *(["--rules", mine] if len(words) < 4 and len(words[0]) < 8 else []))
    assert done.exit_code in (0, 1, 2)
    assert is_safe(done.stdout)
    assert is_safe(done.stderr)


def test_what_is_escaped_is_there(call: Call, exploding: Path, tmp_path: Path) -> None:
    folder = rules(tmp_path / "rules", "ESC")
    page = call("rule", "MY001", "--rules", folder).stdout
    assert is_safe(page)
    for field in ("my@name", "sum@mary", "he@lp", "bli@nd", "wh@y", "act@ion"):
        assert field.replace("@", r"\x1b[31m") in page
    report = call("analyze", exploding, "--rules", folder).stdout
    assert r"MY001 my\x1b[31mname" in report


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX")
def test_a_rules_file_is_printed_as_it_is_but_on_a_terminal(tmp_path: Path) -> None:
    import pty

    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "mine.toml").write_text(RULE.replace("@", "\u009b31m"), encoding="utf-8")
    words = ["rule", "MY001", "--format", "toml", "--rules", str(folder)]
    command = [sys.executable, "-m", "gradtrend", *words]
    assert subprocess.run(command, capture_output=True, check=True).stdout == (folder / "mine.toml").read_bytes()
    ours, theirs = pty.openpty()
    subprocess.run(command, stdout=theirs, check=True)
    shown = os.read(ours, 1 << 16)
    assert "\u009b".encode() not in shown
    assert rb"my\x9b31mname" in shown
