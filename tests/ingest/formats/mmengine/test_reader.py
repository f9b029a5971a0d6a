"""JSON logs of the OpenMMLab family."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradtrend.errors import InputError
from gradtrend.ingest.formats.mmengine import reader
from gradtrend.ingest.reading import Reading, ReadOptions
from tests.ingest.readings import long_table

NUMBERS = st.floats(width=64) | st.sampled_from([math.nan, math.inf])


def read_rows(folder: Path, rows: list[dict[str, object]], tail: str = "") -> Reading:
    path = folder / "20260101_100000.log.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + tail)
    assert reader.claims(path, path.read_bytes())
    (reading,) = reader.read(path, ReadOptions())
    return reading


def points(reading: Reading, metric: str) -> list[tuple[int | None, str]]:
    rows = long_table(reading).filter(pl.col("metric") == metric)
    return [(step, repr(value)) for step, value in rows.select("step", "value").iter_rows()]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(NUMBERS, min_size=2, max_size=24))
def test_iterations_within_epochs_become_steps(tmp_path: Path, values: list[float]) -> None:
    rows: list[dict[str, object]] = [{"env_info": "linux", "seed": 0}]
    for i, value in enumerate(values):
        rows.append(
            {"mode": "train", "epoch": i // 6 + 1, "iter": i % 6 * 10 + 10, "data_time": 0.1, "grad_norm": value}
        )
        if i % 6 == 5:
            rows.append({"mode": "val", "epoch": i // 6 + 1, "iter": 80, "mAP": 0.5, "grad_norm": 99.0})
    assert points(read_rows(tmp_path, rows), "grad_norm") == [(10 * i + 10, repr(v)) for i, v in enumerate(values)]


def test_mmengine_s_own_step_is_used(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {
            "lr": 0.1,
            "data_time": 0.1,
            "loss": 2.0 - i,
            "grad_norm": 1.0,
            "time": 0.3,
            "epoch": 1 + i,
            "iter": 50,
            "step": 50 * i,
        }
        for i in range(3)
    ]
    assert [step for step, _ in points(read_rows(tmp_path, rows), "loss")] == [0, 50, 100]


def test_a_cut_row_is_left_out_and_said(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"mode": "train", "epoch": 1, "iter": 10, "data_time": 0.1, "loss": 2.0}]
    reading = read_rows(tmp_path, rows, '{"mode": "train", "epoch": 1, "it')
    assert points(reading, "loss") == [(10, "2.0")]
    assert [s.line for s in reading.skipped] == [2]


def test_no_training_rows_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "a.log.json"
    path.write_text('{"mode": "val", "epoch": 1, "iter": 80}\n')
    with pytest.raises(InputError, match="no training row"):
        reader.read(path, ReadOptions())


def test_other_json_lines_are_left_to_others() -> None:
    assert not reader.claims(Path("metrics.jsonl"), b'{"step": 1, "loss": 2.0}\n')
    assert not reader.claims(Path("metrics.jsonl"), b'{"iter": 1, "loss": 2.0}\n')


def test_the_text_log_beside_it_tells_how_long_an_epoch_is(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"mode": "train", "epoch": epoch, "iter": i, "data_time": 0.1, "loss": 2.0}
        for epoch in (1, 2)
        for i in (50, 100)
    ]
    assert [step for step, _ in points(read_rows(tmp_path, rows), "loss")] == [50, 100, 150, 200]
    (tmp_path / "20260101_100000.log").write_text("mmdet - INFO - Epoch [1][50/125]\tlr: 0.1, loss: 2.0\n")
    assert [step for step, _ in points(read_rows(tmp_path, rows), "loss")] == [50, 100, 175, 225]
