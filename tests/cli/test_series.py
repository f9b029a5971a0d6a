from __future__ import annotations

import json
from collections.abc import Callable
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


def test_series_of_a_missing_path(call: Call, tmp_path: Path) -> None:
    done = call("series", tmp_path / "missing")
    assert done.exit_code == 3
    assert "missing" in done.stderr
    assert "Traceback" not in done.output
