from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from click.testing import Result

Call = Callable[..., Result]


def test_series_lists_sources_metrics_and_reasons(call: Call, tmp_path: Path) -> None:
    rows = [{"step": i, "grad_norm": 1.0, "max_grad_norm": 1.0, "loss": 2.0} for i in range(5)]
    log = tmp_path / "metrics.jsonl"
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + '{"step": 5, "gra')
    done = call("series", log, "--format", "json")
    assert done.exit_code == 0
    run = json.loads(done.stdout)["runs"][0]
    roles = {series["metric"]: series["role"] for series in run["series"]}
    assert roles == {"grad_norm": "grad_norm", "loss": "loss", "max_grad_norm": "other"}
    assert run["series"][0] | {"why": ""} == {
        "metric": "grad_norm",
        "role": "grad_norm",
        "layer": None,
        "points": 5,
        "first_step": 0,
        "last_step": 4,
        "segments": 1,
        "nonfinite": 0,
        "why": "",
    }
    assert all(series["why"] for series in run["series"])
    assert run["sources"][0]["skipped"][0]["line"] == 6
    text = call("series", log).output
    assert "max_grad_norm: " in text
    assert "line 6" in text


def reasons(call: Call, log: Path, names: Sequence[str], *options: str) -> dict[str, tuple[str, str]]:
    """Role and reason of each metric, of a log in which all of them are logged."""
    rows = [{"step": step, **dict.fromkeys(names, 1.0 + step)} for step in range(5)]
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    run = json.loads(call("series", log, "--format", "json", *options).stdout)["runs"][0]
    return {series["metric"]: (series["role"], series["why"]) for series in run["series"]}


def test_the_reason_is_that_of_the_role(call: Call, tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    chosen = reasons(call, log, ["grad_norm", "my_norm"], "--metric", "my_norm")
    assert chosen["my_norm"] == ("grad_norm", "chosen by the user")
    assert chosen["grad_norm"] == ("other", "another series was chosen by the user")
    found = reasons(call, log, ["grad_norm", "norm", "loss", "loss_cls", "loss_val", "loss_avg"])
    assert found["norm"] == ("other", "the gradient norm itself is logged under another name")
    assert found["loss_cls"] == ("other", "a part of the loss; the total is logged too")
    assert found["loss_val"] == ("loss", "names a loss: the step's own value")
    assert found["loss_avg"] == ("other", "a running average; loss_val is the step's own value")


def test_series_of_a_missing_path(call: Call, tmp_path: Path) -> None:
    done = call("series", tmp_path / "missing")
    assert done.exit_code == 3
    assert "missing" in done.stderr
    assert "Traceback" not in done.output
