"""Which columns of a table count, time or measure something, and what they are called."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gradtrend.ingest.formats.csv import reader
from gradtrend.ingest.formats.csv.header import header_of, metric_names
from gradtrend.ingest.reading import Reading, ReadOptions


def read(folder: Path, text: str, name: str = "log.csv") -> Reading:
    path = folder / name
    path.write_text(text)
    (reading,) = reader.read(path, ReadOptions())
    return reading


def steps(reading: Reading, metric: str) -> list[int | None]:
    return reading.series[metric]["step"].to_list()


@pytest.mark.parametrize(
    ("header", "step"),
    [
        ("step,loss", "step"),
        ("Step [#],loss", "Step [#]"),
        ("Iteration (n),loss", "Iteration (n)"),
        ("epoch,step,loss", "step"),
        ("epoch,loss", None),
        ("training_iteration,timesteps_total,loss", "timesteps_total"),
    ],
)
def test_the_column_of_steps(header: str, step: str | None) -> None:
    found = header_of(header)
    assert found is not None
    assert (found.names[found.counters[0]] if found.counters else None) == step


def test_a_counter_that_is_never_filled_is_none(tmp_path: Path) -> None:
    rows = "".join(f",{i},{2 - i / 10},1.{i}\n" for i in range(1, 9))
    reading = read(tmp_path, "timesteps_total,training_iteration,loss,grad_norm\n" + rows)
    assert steps(reading, "grad_norm") == list(range(1, 9))


@pytest.mark.parametrize(
    "name", ["total/steps", "TotalEnvInteracts", "Episode", "misc/total_timesteps", "num_timesteps"]
)
def test_a_column_that_counts_up_under_another_name(tmp_path: Path, name: str) -> None:
    rows = "".join(f"{i * 4000},{2 - i / 10},1.{i}\n" for i in range(1, 9))
    assert steps(read(tmp_path, f"{name},Loss,Grad Norm\n{rows}"), "Loss") == [4000 * i for i in range(1, 9)]


def test_a_lesser_counter_may_stand_still(tmp_path: Path) -> None:
    rows = "".join(f"{i // 2},{2 - i / 10},1.{i}\n" for i in range(1, 9))
    assert steps(read(tmp_path, f"Episode,Loss,Grad Norm\n{rows}"), "Loss") == [i // 2 for i in range(1, 9)]


def test_a_lesser_counter_that_goes_back_is_none(tmp_path: Path) -> None:
    rows = "".join(f"{i % 3},{2 - i / 10},1.{i}\n" for i in range(1, 9))
    assert steps(read(tmp_path, f"Episode,Loss,Grad Norm\n{rows}"), "Loss") == [None] * 8


def test_a_counter_may_be_told_with_its_end(tmp_path: Path) -> None:
    rows = "".join(f"{i * 10}/120,{2 - i / 10},1.{i}\n" for i in range(1, 9))
    assert steps(read(tmp_path, f"step,loss,grad_norm\n{rows}"), "loss") == [10 * i for i in range(1, 9)]


@pytest.mark.parametrize(("first", "expected"), [([0, 1, 2], [None] * 3), ([10, 20, 30], [10, 20, 30])])
@pytest.mark.parametrize("name", ["", '""', "Unnamed: 0", "index"])
def test_an_index_counts_where_it_is_more_than_the_number_of_the_row(
    tmp_path: Path, name: str, first: list[int], expected: list[int | None]
) -> None:
    rows = "".join(f"{i},2.{i},1.{i}\n" for i in first)
    reading = read(tmp_path, f"{name},loss,grad_norm\n{rows}")
    assert steps(reading, "loss") == expected
    assert set(reading.series) == {"loss", "grad_norm"}


def test_no_column_takes_the_place_of_another(tmp_path: Path) -> None:
    reading = read(tmp_path, "step,loss,grad_norm,loss\n1,2.0,1.0,7.0\n2,1.9,1.1,7.5\n")
    assert {name: points["value"].to_list() for name, points in reading.series.items()} == {
        "loss": [2.0, 1.9], "grad_norm": [1.0, 1.1], "loss.1": [7.0, 7.5],
    }  # fmt: skip


def test_a_download_of_several_runs_keeps_them_apart() -> None:
    header = header_of("Step,red - train/loss,blue - train/loss")
    assert header is not None
    assert metric_names(header) == ["red - train/loss", "blue - train/loss"]


def test_keras_counts_epochs_and_calls_its_columns_as_on_the_console(tmp_path: Path) -> None:
    reading = read(tmp_path, "epoch,accuracy,learning_rate,loss,val_loss\n0,0.5,0.1,2.0,2.1\n1,0.6,0.1,1.5,1.8\n")
    assert steps(reading, "loss") == [0, 1]
    assert list(reading.series) == ["accuracy", "learning_rate", "loss", "val_loss"]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_where_no_comma_separates(tmp_path: Path, separator: str) -> None:
    lines = ["step;loss;grad_norm", "1;2,5;1.234,5", "2;1,25e-2;0,75"]
    reading = read(tmp_path, "\n".join(line.replace(";", separator) for line in lines) + "\n")
    assert reading.series["loss"]["value"].to_list() == [2.5, 0.0125]
    assert reading.series["grad_norm"]["value"].to_list() == [1234.5, 0.75]


def test_times_in_milliseconds(tmp_path: Path) -> None:
    reading = read(tmp_path, "timestamp\tstep\tloss\n1700000000500\t1\t2.0\n1700000001500\t2\t1.9\n")
    assert reading.series["loss"].select("step", "time").rows() == [(1, 1700000000.5), (2, 1700000001.5)]


def test_a_header_of_more_than_the_first_bytes(tmp_path: Path) -> None:
    from gradtrend.ingest.runs.finding.tree import adapter_for

    names = [f"activations/of_a_layer_with_a_long_name/{i}" for i in range(2500)]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in (["step", "loss", *names], [1, 2.0, *([0.5] * 2500)])))
    adapter = adapter_for(path)
    assert adapter is not None
    assert adapter.name == "csv"
    (reading,) = adapter.read(path, ReadOptions())
    assert reading.series["loss"].select(pl.col("value").sum()).item() == 2.0


@pytest.mark.parametrize(
    "head",
    [
        "# started 2026-01-05, seed 3\nstep,loss,grad_norm\n",
        "# step,loss,grad_norm\n",
        "#step,loss,grad_norm\n",
        "# a remark\n\n#step,loss,grad_norm\n",
        "\ufeffstep,loss,grad_norm\n",
    ],
)
def test_remarks_ahead_of_the_rows(tmp_path: Path, head: str) -> None:
    text = f"{head}10,2.5,1.0\n# resumed\n20,2.25,1.5\n"
    assert reader.claims(Path("log.csv"), text.encode())
    reading = read(tmp_path, text)
    assert reading.series["grad_norm"].select("step", "value").rows() == [(10, 1.0), (20, 1.5)]
    assert reading.skipped == ()


def test_an_index_may_be_called_by_its_sign(tmp_path: Path) -> None:
    reading = read(tmp_path, "#,loss,grad_norm\n10,2.5,1.0\n20,2.25,1.5\n")
    assert reading.series["loss"].select("step", "value").rows() == [(10, 2.5), (20, 2.25)]
