"""`--columns`, and a metric that only the user knows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import gradtrend
from gradtrend.cli import main
from gradtrend.errors import ConfigError

Call = Callable[..., Result]
BARE = "".join(f"{i} {2 - i / 50:.4f} {1 + i % 3 / 10:.3f}\n" for i in range(1, 31))


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.txt"
    path.write_text(BARE)
    return path


def test_bare_numbers_are_judged(call: Call, bare: Path) -> None:
    assert call("analyze", bare).exit_code == 3
    done = call("analyze", bare, "--columns", "step, loss, grad_norm", "--format", "json")
    (run,) = json.loads(done.stdout)["runs"]
    assert (done.exit_code, run["verdict"]) == (0, "stable")
    assert {series["metric"]: series["last_step"] for series in run["series"]} == {"grad_norm": 30, "loss": 30}


def test_as_pasted_text() -> None:
    done = CliRunner().invoke(main, ["series", "-", "--columns", "step,-,gnorm", "--format", "json"], input=BARE)
    (run,) = json.loads(done.stdout)["runs"]
    assert [(series["metric"], series["points"]) for series in run["series"]] == [("gnorm", 30)]


@pytest.mark.parametrize(
    ("columns", "code", "said"),
    [
        ("step,loss", 3, "no line has 2 numbers"),
        ("step,loss,grad_norm,lr", 3, "no line has 4 numbers"),
        ("step,loss,loss", 2, "names 'loss' twice"),
        ("step", 2, "names nothing to be judged"),
        ("", 2, "names nothing to be judged"),
    ],
)
def test_columns_that_do_not_fit(call: Call, bare: Path, columns: str, code: int, said: str) -> None:
    for command in ("analyze", "series"):
        done = call(command, bare, "--columns", columns)
        assert done.exit_code == code
        assert said in done.output


def test_columns_are_those_of_a_table(call: Call, bare: Path) -> None:
    done = call("analyze", bare, "--columns", "step,loss,grad_norm", "--source", "console")
    assert (done.exit_code, "not of console" in done.output) == (2, True)
    assert call("analyze", bare, "--columns", "step,loss,grad_norm", "--source", "csv").exit_code == 0


def test_from_python(bare: Path) -> None:
    assert gradtrend.analyze(bare, columns="step,loss,grad_norm").verdict == "stable"
    assert gradtrend.analyze(bare, columns=["-", "loss", "grad_norm"]).verdict == "stable"
    with pytest.raises(ConfigError, match="twice"):
        gradtrend.analyze(bare, columns="step,loss,loss")


def test_any_table_whose_column_is_named(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("t;size of the step\n" + "".join(f"{i};1,{i % 7}\n" for i in range(30)))
    assert call("series", path).exit_code == 3
    done = call("series", path, "--metric", "size of the step", "--format", "json")
    (run,) = json.loads(done.stdout)["runs"]
    first = run["series"][0]
    assert (first["metric"], first["role"], first["points"]) == ("size of the step", "grad_norm", 30)
    in_folder = call("series", tmp_path, "--metric", "size of the step", "--format", "json")
    assert json.loads(in_folder.stdout)["runs"][0]["series"][0]["points"] == 30


def test_a_name_is_taken_as_it_is_printed(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps({"step": i, "n\x1b[1m": 1.5}) + "\n" for i in range(20)))
    assert "n\\x1b[1m" in call("series", path).output
    assert call("series", path, "--metric", "n\\x1b[1m").exit_code == 0
    assert call("series", path, "--metric", "n\x1b[1m").exit_code == 0
    assert call("series", path, "--metric", "n\\x1c[1m").exit_code == 3
