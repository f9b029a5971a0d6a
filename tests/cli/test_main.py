from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from gradtrend.cli.main import COMMANDS
from gradtrend.detect import rules
from gradtrend.version import __version__

Call = Callable[..., Result]


def test_help_lists_every_command_in_order(call: Call) -> None:
    lines = call("--help").output.split("Commands:\n")[1].splitlines()
    assert [line.split()[0] for line in lines] == list(COMMANDS)


def test_version(call: Call) -> None:
    assert call("--version").output == f"gradtrend {__version__}\n"


def test_a_path_in_place_of_a_command_gets_a_hint(call: Call, tmp_path: Path) -> None:
    done = call(tmp_path)
    assert done.exit_code == 2
    assert f"gradtrend analyze {tmp_path}" in done.stderr


def test_a_mistyped_command_gets_a_hint(call: Call) -> None:
    done = call("analize")
    assert done.exit_code == 2
    assert "analyze" in done.stderr


def test_an_internal_error_is_one_line_and_a_traceback_only_when_asked(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "load_rules", lambda folder: 1 / 0)
    done = call("rule")
    assert done.exit_code == 4
    assert done.stderr.startswith("gradtrend: internal error: ZeroDivisionError")
    assert "Traceback" not in done.output
    assert "Traceback" in call("rule", "--debug").stderr
