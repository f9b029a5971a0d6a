"""A store given to the command line: all its runs count, and the options narrow them."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import Result

Call = Callable[..., Result]
RUNS = 11


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """An MLflow database of 11 runs, five of which explode; the newest is healthy."""
    path = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table experiments (experiment_id integer, name, lifecycle_stage)")
        connection.execute("insert into experiments values (1, 'first', 'active'), (2, 'second', 'active')")
        connection.execute("create table runs (run_uuid, name, start_time, lifecycle_stage, experiment_id)")
        connection.execute("create table metrics (key, value, timestamp, run_uuid, step, is_nan)")
        for run in range(RUNS):
            run_id, sick = f"{run:x}f" * 16, run % 2 == 1
            row = (run_id, f"{'sick' if sick else 'fine'}-{run}", 1000 * run, "active", 1 + run % 3 // 2)
            connection.execute("insert into runs values (?, ?, ?, ?, ?)", row)
            for step in range(60):
                norm = (1 + 0.1 * math.sin(step + run)) * (10 ** max(0, (step - 30) / 6) if sick else 1)
                for key, value in (("grad_norm", norm), ("loss", 2 - step / 60 + norm / 1000)):
                    connection.execute(
                        "insert into metrics values (?, ?, ?, ?, ?, 0)", (key, value, 1000 * run + step, run_id, step)
                    )
        connection.commit()
    return path


def judged(done: Result) -> dict[str, str]:
    return {run["name"]: run["verdict"] for run in json.loads(done.stdout)["runs"]}


def test_all_runs_are_judged_and_sick_ones_fail_the_call(call: Call, store: Path) -> None:
    done = call("analyze", store, "--format", "json")
    assert done.exit_code == 1
    verdicts = judged(done)
    assert len(verdicts) == RUNS
    assert all((verdict == "exploding") == name.startswith("sick") for name, verdict in verdicts.items())
    assert json.loads(done.stdout)["runs"][0]["run"] == f"{store}/{'0f' * 16}"
    folder, _, *rows = call("analyze", store).stdout.splitlines()
    assert folder == f"Runs below {store}/"
    assert sum(row.startswith("stable") and row.endswith(f"  {'0f' * 16} (fine-0)") for row in rows) == 1


@pytest.mark.parametrize(
    ("options", "names", "code"),
    [
        (["--newest"], ["fine-10"], 0),
        (["--run-id", "fine-2", "--run-id", "3f"], ["fine-2", "sick-3"], 1),
        (["--experiment", "second"], ["fine-2", "sick-5", "fine-8"], 1),
        (["--experiment", "2", "--newest"], ["fine-8"], 0),
    ],
)
def test_options_narrow(call: Call, store: Path, options: list[str], names: list[str], code: int) -> None:
    done = call("analyze", store, "--format", "json", *options)
    assert (list(judged(done)), done.exit_code) == (names, code)
    listed = json.loads(call("series", store, "--format", "json", *options).stdout)["runs"]
    assert [run["name"] for run in listed] == names


def test_a_run_that_is_not_there(call: Call, store: Path) -> None:
    done = call("analyze", store, "--run-id", "fin-8")
    assert done.exit_code == 3
    assert "no run fin-8" in done.stdout
    assert done.stdout.index("(fine-8,") < done.stdout.index("(sick-9,")
    done = call("analyze", store, "--experiment", "secnd")
    assert done.exit_code == 3
    assert "second (2)" in done.stdout


def test_an_address_of_the_store(call: Call, store: Path) -> None:
    done = call("analyze", f"sqlite:///{store}", "--run-id", "sick-1", "--format", "json")
    assert [run["run"] for run in json.loads(done.stdout)["runs"]] == [f"sqlite:///{store}/{'1f' * 16}"]


def test_a_run_by_mlflow_s_own_address(call: Call, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{store}")
    done = call("analyze", f"runs:/{'1f' * 16}/model", "--format", "json")
    assert [run["run"] for run in json.loads(done.stdout)["runs"]] == [f"runs:/{'1f' * 16}/model"]
    assert judged(done) == {"sick-1": "exploding"}
    assert call("analyze", "runs:/").exit_code == 3
