"""The folder that DVCLive writes, as its versions lay it out."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradtrend.errors import EmptyLogError, InputError
from gradtrend.ingest.formats.dvclive import ADAPTER, reader
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.runs.finding.find import find_runs
from tests.ingest.readings import long_table, read_one


def write(table: Path, text: str) -> None:
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_text(text)


def live(folder: Path, place: str = "plots/metrics") -> Path:
    """A folder with two metrics of training and one of evaluation."""
    for name in ("train/loss", "train/grad_norm", "eval/loss"):
        last = name.rsplit("/", 1)[-1]
        write(folder / place / f"{name}.tsv", f"step\t{last}\n" + "".join(f"{i}\t{i / 7 + 1!r}\n" for i in range(12)))
    (folder / "metrics.json").write_text('{\n    "step": 11,\n    "train": {\n        "loss": 2.57\n    }\n}\n')
    return folder


def points(reading: Reading, metric: str) -> list[tuple[int, float]]:
    return reading.series[metric].select("step", "value").rows()


@pytest.mark.parametrize("place", ["plots/metrics", "scalars"])
def test_each_table_is_a_metric_called_by_its_path(tmp_path: Path, place: str) -> None:
    folder = live(tmp_path / "out", place)
    assert ADAPTER.claims(folder, b"")
    reading = read_one(reader.read, folder)
    assert set(reading.series) == {"train/loss", "train/grad_norm", "eval/loss"}
    assert points(reading, "train/grad_norm") == [(i, i / 7 + 1) for i in range(12)]


def test_the_oldest_layout_with_times(tmp_path: Path) -> None:
    write(tmp_path / "dvclive" / "loss.tsv", "timestamp\tstep\tloss\n1620000000500\t0\t2.0\n1620000001500\t1\tnan\n")
    (tmp_path / "dvclive.json").write_text('{"step": 1, "loss": 1.5}')
    reading = read_one(reader.read, tmp_path / "dvclive")
    assert long_table(reading).select("step", "time").rows() == [(0, 1620000000.5), (1, 1620000001.5)]
    assert not ADAPTER.claims(tmp_path, b"")


def test_the_folder_is_one_log_of_the_run_around_it(tmp_path: Path) -> None:
    live(tmp_path / "run" / "dvclive")
    (run,) = find_runs(str(tmp_path / "run"))
    assert [(log.adapter.name, log.path.name) for log in run.logs] == [("dvclive", "dvclive")]


def test_parameters_are_settings(tmp_path: Path) -> None:
    folder = live(tmp_path)
    (folder / "params.yaml").write_text("lr: 0.02\nmax_grad_norm: 2.5\n")
    settings_read = read_one(reader.read, folder).settings
    assert (settings_read.learning_rate, settings_read.gradient_clip) == (0.02, 2.5)


def test_damage_costs_the_damaged_rows(tmp_path: Path) -> None:
    write(tmp_path / "plots/metrics/loss.tsv", "step\tloss\n0\t2.125\nrubbish\n1\tx\n2\t1.875\n3\t12")
    reading = read_one(reader.read, tmp_path)
    assert points(reading, "loss") == [(0, 2.125), (2, 1.875)]
    assert [(piece.line, piece.reason) for piece in reading.skipped] == [
        (3, "loss: no step and value"), (4, "loss: no step and value"), (6, "loss: truncated in its last number"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["x\ty\n1\t2\n", "1\t2\n", ""])
def test_other_folders_are_left_to_others(tmp_path: Path, text: str) -> None:
    write(tmp_path / "plots/metrics/points.tsv", text)
    assert not ADAPTER.claims(tmp_path, b"")
    assert not ADAPTER.claims(tmp_path / "plots", b"")


def test_tables_without_a_point(tmp_path: Path) -> None:
    write(tmp_path / "plots/metrics/loss.tsv", "step\tloss\n")
    with pytest.raises(EmptyLogError):
        reader.read(tmp_path, ReadOptions())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path: Path, rest: bytes) -> None:
    (tmp_path / "plots/metrics").mkdir(parents=True, exist_ok=True)
    (tmp_path / "plots/metrics/loss.tsv").write_bytes(b"step\tloss\n0\t1.5\n" + rest)
    with contextlib.suppress(InputError):
        for reading in reader.read(tmp_path, ReadOptions()):
            long_table(reading)


def test_the_mean_of_all_steps_is_no_loss_of_the_last(tmp_path: Path) -> None:
    for name, rows in (("loss", "1\t4.5\n2\t3.5\n"), ("train/loss", "2\t4.0\n"), ("train/runtime", "2\t95.5\n")):
        write(tmp_path / f"plots/metrics/{name}.tsv", f"step\t{name.rpartition('/')[2]}\n{rows}")
    assert set(read_one(reader.read, tmp_path).series) == {"loss", "train/runtime"}
