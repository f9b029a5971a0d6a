"""Tables that a program holds are judged as the files of them would be."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import gradtrend
from tests.ingest.runs.writers import fit, jsonl
from tests.places import EXPLODING

_COLUMNS = {
    "step": [10 * i for i in range(60)],
    "loss": [1 / (1 + i) for i in range(60)],
    "grad_norm": [1 + 0.01 * (i % 5) for i in range(50)] + [math.nan] * 10,
}
_TABLES = [
    _COLUMNS,
    {name: np.array(values) for name, values in _COLUMNS.items()},
    {name: tuple(values) for name, values in _COLUMNS.items()},
    pl.DataFrame(_COLUMNS),
    pd.DataFrame(_COLUMNS),
    pd.DataFrame(_COLUMNS).set_index("step"),
]


@pytest.mark.parametrize("table", _TABLES)
def test_every_kind_of_table_is_judged_alike(table: Any) -> None:
    report = gradtrend.analyze(table)
    assert report.verdict is gradtrend.Verdict.NAN_COLLAPSE
    assert report.nonfinite is not None
    assert report.nonfinite.grad_first_step == 500
    assert [source.format for source in report.sources] == ["table"]
    assert len(report.series_frame()) == 120


def test_without_steps_it_has_rows() -> None:
    report = gradtrend.analyze({"grad_norm": _COLUMNS["grad_norm"]})
    assert report.nonfinite is not None
    assert report.nonfinite.grad_first_step == 50


def test_a_row_a_value_is_a_table_too() -> None:
    report = gradtrend.analyze(EXPLODING)
    again = gradtrend.analyze(report.series_frame())
    assert (again.verdict, again.confidence) == (report.verdict, report.confidence)


def test_cells_that_were_not_measured_are_no_nan() -> None:
    """A history of W&B: pandas has one word for both."""
    frame = pd.DataFrame(_COLUMNS | {"grad_norm": [1 + 0.01 * (i % 5) for i in range(60)]})
    frame["val_loss"] = [0.5 if i % 10 == 9 else math.nan for i in range(60)]
    assert gradtrend.analyze(frame).verdict is gradtrend.Verdict.STABLE


def test_infinity_stays_what_it_is() -> None:
    table = _COLUMNS | {"grad_norm": [1.0] * 30 + [1.5] * 20 + [math.inf] * 10}
    for one in (table, pl.DataFrame(table), pd.DataFrame(table)):
        assert np.isinf(gradtrend.analyze(one).series_frame()["value"].to_numpy()).sum() == 10


def test_a_metric_is_named_as_it_is_in_a_file() -> None:
    table = {"step": _COLUMNS["step"], "odd": _COLUMNS["grad_norm"], 'two\nlines, "quoted"': _COLUMNS["loss"]}
    report = gradtrend.analyze(table, metric="odd")
    assert report.verdict is gradtrend.Verdict.NAN_COLLAPSE
    assert set(report.series_frame()["metric"]) == {"odd", 'two lines, "quoted"'}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "no columns"),
        ({"a": [1.0], "grad_norm": [1.0, 2.0]}, "height"),
        ({"grad_norm": [object()]}, "no table of numbers"),
        ({"name": ["x", "y"]}, "no row of numbers|no gradient norm|header"),
        (5, "neither a path nor a table"),
        (["a", "b"], "neither a path nor a table"),
    ],
)
def test_what_is_no_table_is_an_input_error(table: Any, said: str) -> None:
    with pytest.raises(gradtrend.InputError, match=said):
        gradtrend.analyze(table)


def test_several_paths_and_one_table_for_all(tmp_path: Path) -> None:
    for seed in range(2):
        jsonl(tmp_path / f"run{seed}" / "metrics.jsonl", fit("stable", seed))
    paths = [tmp_path / "run0", str(tmp_path / "run1"), tmp_path / "missing"]
    reports = gradtrend.analyze_all(paths)
    assert [next(reports).run, next(reports).run] == [str(tmp_path / "run0"), str(tmp_path / "run1")]
    with pytest.raises(gradtrend.InputError, match="missing"):
        next(reports)
    assert [report.verdict for report in gradtrend.analyze_all(_COLUMNS)] == [gradtrend.Verdict.NAN_COLLAPSE]
    with pytest.raises(gradtrend.InputError, match="a dict among several"):
        list(gradtrend.analyze_all([_COLUMNS]))  # type: ignore[list-item]
