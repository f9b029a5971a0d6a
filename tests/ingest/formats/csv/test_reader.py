"""CSV tables: pandas, Lightning, Keras, downloads; which empty cells are NaN."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradtrend.errors import InputError
from gradtrend.ingest.formats.csv import empty_cells, reader
from gradtrend.ingest.formats.csv.empty_cells import undefined_cells
from gradtrend.ingest.reading import Reading, ReadOptions
from tests.ingest.readings import long_table

NUMBERS = st.floats(width=64) | st.sampled_from([0.0, math.nan, math.inf, -math.inf])


def read_text(folder: Path, text: str | bytes, name: str = "metrics.csv") -> Reading:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert reader.claims(path, path.read_bytes()[:65536])
    (reading,) = reader.read(path, ReadOptions())
    return reading


def points(reading: Reading, metric: str) -> list[tuple[int | None, str]]:
    rows = long_table(reading).filter(pl.col("metric") == metric)
    return [(step, repr(value)) for step, value in rows.select("step", "value").iter_rows()]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=20), st.sampled_from(",;\t"))
def test_what_is_written_is_read_back(tmp_path: Path, rows: list[tuple[float, float]], separator: str) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator)
    writer.writerow(["step", "train/loss", "grad_norm, L2"])
    writer.writerows([(7 * i, repr(loss), repr(norm)) for i, (loss, norm) in enumerate(rows)])
    reading = read_text(tmp_path, text.getvalue())
    assert points(reading, "train/loss") == [(7 * i, repr(loss)) for i, (loss, _) in enumerate(rows)]
    assert points(reading, "grad_norm, L2") == [(7 * i, repr(norm)) for i, (_, norm) in enumerate(rows)]


def test_an_empty_cell_of_pandas_is_nan(tmp_path: Path) -> None:
    text = "step,loss,grad_norm,lr\n0,2.0,1.0,0.1\n1,1.9,inf,0.1\n2,,,0.1\n3,1.8,1.1,0.1\n4,,,0.1\n"
    reading = read_text(tmp_path, text)
    assert points(reading, "grad_norm") == [(0, "1.0"), (1, "inf"), (2, "nan"), (3, "1.1"), (4, "nan")]
    assert len(points(reading, "lr")) == 5


def test_a_row_of_nothing_but_a_step_is_all_nan(tmp_path: Path) -> None:
    assert points(read_text(tmp_path, "step,loss,grad_norm\n0,2.0,1.0\n1,1.9,1.1\n2,,\n"), "loss")[-1] == (2, "nan")


def test_rows_of_another_kind_are_not_nan(tmp_path: Path) -> None:
    text = (
        "epoch,grad_norm,step,train_loss,val_loss\n0,1.0,0,2.0,\n0,1.1,1,1.9,\n0,,1,,1.95\n1,1.2,2,1.8,\n1,nan,3,nan,\n"
    )
    reading = read_text(tmp_path, text)
    assert points(reading, "grad_norm") == [(0, "1.0"), (1, "1.1"), (2, "1.2"), (3, "nan")]
    assert points(reading, "val_loss") == [(1, "1.95")]


def test_a_metric_logged_every_few_rows_is_not_nan_between() -> None:
    filled = np.array([[True] * 12, [i % 4 == 0 for i in range(12)]])
    assert not undefined_cells(filled, 1).any()


def test_a_metric_that_breaks_off_after_one_value_is_nan() -> None:
    filled = np.array([[True] * 5, [True, False, False, False, False]])
    assert undefined_cells(filled, 1).tolist() == [False, True, True, True, True]


def test_rows_that_only_log_the_learning_rate_are_of_another_kind(tmp_path: Path) -> None:
    text = "step,lr-Adam,train_loss\n0,0.1,\n0,,2.0\n1,0.1,\n1,,1.9\n2,0.1,\n2,,1.8\n"
    reading = read_text(tmp_path, text)
    assert points(reading, "train_loss") == [(0, "2.0"), (1, "1.9"), (2, "1.8")]
    assert points(reading, "lr-Adam") == [(0, "0.1"), (1, "0.1"), (2, "0.1")]


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("grad_norm.csv", "grad_norm"),
        ("run-.-tag-train_grad_norm.csv", "train_grad_norm"),
        ("run-lr3e4-tag-train_grad_norm (1).csv", "train_grad_norm"),
        ("my_run_tag_grad_norm.csv", "grad_norm"),
    ],
)
def test_a_tensorboard_download_is_named_by_its_file(tmp_path: Path, name: str, metric: str) -> None:
    reading = read_text(tmp_path, "Wall time,Step,Value\n1748867102.02,300,78.3\n1748867103.5,500,NaN\n", name)
    assert points(reading, metric) == [(300, "78.3"), (500, "nan")]
    assert long_table(reading)["time"].to_list() == [1748867102.02, 1748867103.5]


def test_a_table_of_one_row_a_value(tmp_path: Path) -> None:
    text = (
        "run_id,metric,step,timestamp,value\na,train/grad_norm,0,1,1.5\na,train/loss,0,1,2.0\na,train/grad_norm,1,1,\n"
    )
    assert points(read_text(tmp_path, text), "train/grad_norm") == [(0, "1.5"), (1, "nan")]


def test_a_download_of_weights_and_biases(tmp_path: Path) -> None:
    name = "run 1 - train/grad_norm"
    text = f'"Step","{name}","{name}__MIN","{name}__MAX"\n"1","2","1","3"\n"2","4","1","5"\n'
    assert points(read_text(tmp_path, text), "train/grad_norm") == [(1, "2.0"), (2, "4.0")]


def test_keras_writes_na_where_nothing_was_validated(tmp_path: Path) -> None:
    text = "epoch,accuracy,loss,val_loss\n0,0.5,2.0,NA\n1,0.6,1.9,2.1\n2,0.7,1.8,NA\n3,0.7,1.7,NA\n4,0.7,1.6,2.0\n"
    reading = read_text(tmp_path, text)
    assert points(reading, "val_loss") == [(1, "2.1"), (4, "2.0")]
    assert points(reading, "loss")[-1] == (4, "1.6")


def test_damage_costs_only_the_damaged_rows(tmp_path: Path) -> None:
    text = "step,loss,grad_norm\n0,2.0,1.0\nstep,loss,grad_norm\n1,1.9\n2,1.8,x\n3,1.7,1.3\n4,1."
    reading = read_text(tmp_path, text)
    assert points(reading, "loss") == [(0, "2.0"), (2, "1.8"), (3, "1.7")]
    assert points(reading, "grad_norm") == [(0, "1.0"), (3, "1.3")]
    assert [s.line for s in reading.skipped] == [4, 7]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_german_spreadsheet(tmp_path: Path, encoding: str) -> None:
    data = "step;loss;grad_norm\r\n1;0,5;1,5\r\n2;0,4;1,25\r\n".encode(encoding)
    assert points(read_text(tmp_path, data), "grad_norm") == [(1, "1.5"), (2, "1.25")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labels.csv", "image_path,label\na.png,1\nb.png,2\n"),
        ("data.csv", "x,y\n1,2\n3,4\n"),
        ("metrics.csv", "1,2,3\n4,5,6\n"),
        ("train.log", "step 1, loss 2.0, grad_norm 1.0\nstep 2, loss 1.9, grad_norm 1.1\n"),
        ("metrics.json", '{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 2.0}\n'),
        ("talk.txt", "The loss, the norm, and the step\nare, as we say, three\n"),
    ],
)
def test_other_files_are_left_to_others(name: str, text: str) -> None:
    assert not reader.claims(Path(name), text.encode())


def test_a_table_without_rows_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss\n")
    with pytest.raises(InputError, match="no row of numbers"):
        reader.read(path, ReadOptions())
    path.write_text("\n\n")
    with pytest.raises(InputError, match="no header"):
        reader.read(path, ReadOptions())


def test_columns_filled_alike_are_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = empty_cells.undefined_cells
    monkeypatch.setattr(empty_cells, "undefined_cells", lambda filled, i: calls.append(i) or real(filled, i))
    names = [f"c{i}" for i in range(500)]
    lines = [",".join(["step", "grad_norm", *names])]
    lines += [",".join([str(row), "1.5", *(["1", ""][row % 2] for _ in names)]) for row in range(20)]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(lines))
    (reading,) = reader.read(path, ReadOptions())
    assert long_table(reading).filter(pl.col("metric") == "grad_norm").height == 20
    assert len(calls) == 2


def layers_that_become_nan(tmp_path: Path, layers: int, rows: int) -> Path:
    """A table of pandas: each layer's norm is NaN, an empty cell, from a row of its own on."""
    path = tmp_path / "log.csv"
    lines = [",".join(["step", "loss", *(f"grad_norm/{i}.weight" for i in range(layers))])]
    for step in range(rows):
        norms = ("1.5" if step < rows - 1 - i else "" for i in range(layers))
        lines.append(",".join([str(step), "2.5", *norms]))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_layers_that_become_nan_one_after_another(tmp_path: Path) -> None:
    (reading,) = reader.read(layers_that_become_nan(tmp_path, 60, 200), ReadOptions())
    for i in range(60):
        norm = reading.series[f"grad_norm/{i}.weight"]
        assert norm.height == 200
        assert int(norm["value"].is_nan().sum()) == i + 1


def test_what_cannot_be_told_in_good_time_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(empty_cells, "_MOST_CELLS", 1000)
    with pytest.raises(InputError, match="cannot be told from NaN"):
        reader.read(layers_that_become_nan(tmp_path, 20, 50), ReadOptions())


@pytest.mark.parametrize("written", ["5,15e-06", "1,2e+17", "-3,5E2", "+2,5", "0,5"])
def test_decimal_commas_with_and_without_an_exponent(tmp_path: Path, written: str) -> None:
    reading = read_text(tmp_path, f"step;loss;grad_norm\n0;1,5;{written}\n1;1,5;0,5\n")
    assert reading.series["grad_norm"]["value"][0] == float(written.replace(",", "."))


def table(tmp_path: Path, norm: Sequence[str], loss: Sequence[str]) -> dict[str, pl.DataFrame]:
    path = tmp_path / "log.csv"
    rows = (f"{step},{a},{b}" for step, (a, b) in enumerate(zip(norm, loss, strict=True)))
    path.write_text("\n".join(["step,grad_norm,loss", *rows]) + "\n")
    return dict(reader.read(path, ReadOptions())[0].series)


def test_a_norm_that_is_empty_while_the_loss_goes_on_is_not_logged(tmp_path: Path) -> None:
    series = table(tmp_path, ["1.5"] * 40 + [""] * 20, [f"{3 - i / 30:.3f}" for i in range(60)])
    assert series["grad_norm"].height == 40
    sparse = ["1.5" if i < 50 or i % 10 == 0 else "" for i in range(100)]
    series = table(tmp_path, sparse, [f"{3 - i / 50:.3f}" for i in range(100)])
    assert series["grad_norm"].height == 55


def test_a_loss_that_is_empty_while_the_norm_goes_on_is_not_logged(tmp_path: Path) -> None:
    assert table(tmp_path, ["1.5"] * 60, ["2.0"] * 40 + [""] * 20)["loss"].height == 40


def test_a_norm_and_a_loss_that_are_empty_together_are_nan(tmp_path: Path) -> None:
    series = table(tmp_path, ["1.5"] * 40 + [""] * 20, ["2.0"] * 41 + [""] * 19)
    assert int(series["grad_norm"]["value"].is_nan().sum()) == 20
    assert int(series["loss"]["value"].is_nan().sum()) == 19


def test_a_few_updates_skipped_on_end_are_nan(tmp_path: Path) -> None:
    series = table(tmp_path, ["1.5"] * 30 + [""] * 3 + ["1.5"] * 27, ["2.0"] * 60)
    assert int(series["grad_norm"]["value"].is_nan().sum()) == 3


@pytest.mark.parametrize(
    ("cell", "kept"),
    [("12", False), ("", False), ("123484.7", True), ("123484.", False), ("nan", True)],
)
def test_a_last_number_that_may_be_cut_is_not_believed(tmp_path: Path, cell: str, kept: bool) -> None:
    rows = "".join(f"{i},0.5,{123400 + i}.7\n" for i in range(20))
    reading = read_text(tmp_path, f"step,loss,grad_norm\n{rows}20,0.4,{cell}")
    told = [(piece.line, piece.reason) for piece in reading.skipped]
    assert told == ([] if kept else [(22, "truncated in its last number")])
    assert points(reading, "loss")[-1] == (20, "0.4")
    assert (points(reading, "grad_norm")[-1][0] == 20) is kept


def test_a_row_that_breaks_off_is_truncated(tmp_path: Path) -> None:
    reading = read_text(tmp_path, "step,loss,grad_norm\n0,2.0,1.0\n1,1.9,1.1\n2,1.")
    assert [(piece.line, piece.reason) for piece in reading.skipped] == [(4, "truncated")]


@pytest.mark.parametrize(
    ("text", "names", "holds"),
    [
        ("a,my norm\n1,2.5\n2,2.6\n", ("my norm",), True),
        ("my norm\n2.5\n2.6\n", ("my norm",), True),
        ("a;my norm\n1;2,5\n2;2,6\n", ("my norm",), True),
        ("a,my norm\n1,red\n2,blue\n", ("my norm",), False),
        ("a,my norm\n1,2.5\n", ("norm",), False),
        ("1,2\n3,4\n", ("1",), False),
    ],
)
def test_any_table_whose_column_the_user_names(text: str, names: tuple[str, ...], holds: bool) -> None:
    assert reader.holds(Path("x.csv"), text.encode(), names) is holds


def test_a_table_without_known_names_is_read_when_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2.5\n2,2.6\n")
    (reading,) = reader.read(path, ReadOptions())
    assert list(reading.series) == ["a", "b"]


def test_rows_of_held_out_data_are_series_of_their_own(tmp_path: Path) -> None:
    rows = "".join(f"{e},train,{2 - e / 10},1.5\n{e},Val,{3 - e / 10},\n" for e in range(5))
    reading = read_text(tmp_path, f"epoch,phase,loss,grad_norm\n{rows}")
    assert set(reading.series) == {"loss", "grad_norm", "val/loss"}
    assert points(reading, "loss") == [(e, repr(2 - e / 10)) for e in range(5)]
    assert points(reading, "val/loss") == [(e, repr(3 - e / 10)) for e in range(5)]
    long = read_text(tmp_path, "step,split,name,value\n1,train,loss,2.0\n1,test,loss,3.0\n1,test,test_acc,0.5\n")
    assert set(long.series) == {"loss", "test/loss", "test_acc"}


def test_words_that_name_no_held_out_data_are_no_part(tmp_path: Path) -> None:
    rows = "".join(f"{i},{'P1_align' if i < 3 else 'validated'},{2 - i / 10}\n" for i in range(6))
    assert set(read_text(tmp_path, f"step,phase,loss\n{rows}").series) == {"loss"}
