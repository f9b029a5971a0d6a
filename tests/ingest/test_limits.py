"""The budgets of reading: where one is reached it is said, and what was read stands."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import gradtrend
from gradtrend.errors import InputError
from gradtrend.ingest import limits
from gradtrend.ingest.files import json_document
from gradtrend.ingest.formats import ADAPTERS
from gradtrend.ingest.formats.console import reader as console
from gradtrend.ingest.formats.console import rows as console_rows
from gradtrend.ingest.formats.csv import reader as csv
from gradtrend.ingest.formats.dvclive import reader as dvclive
from gradtrend.ingest.formats.json import reader as document
from gradtrend.ingest.formats.jsonl import reader as jsonl
from gradtrend.ingest.formats.mlflow import files as mlruns
from gradtrend.ingest.formats.mlflow import sqlite as mlflow
from gradtrend.ingest.formats.mmengine import reader as mmengine
from gradtrend.ingest.formats.tensorboard import reader as tensorboard
from gradtrend.ingest.formats.trackio import reader as trackio
from gradtrend.ingest.reading import Adapter, ReadOptions, columns
from tests.ingest.formats.tensorboard.event_files import scalar_events, write_events
from tests.ingest.readings import Read, read_one
from tests.places import ROOT

MANY, MOST = 40, 10


def _rows(path: Path) -> Path:
    path.write_text("".join(json.dumps({"step": i, "loss": 1.5, f"m{i}": 2.5}) + "\n" for i in range(MANY)))
    return path


def _long_table(path: Path) -> Path:
    path.write_text("step,name,value\n" + "".join(f"{i},loss,1.5\n{i},m{i},2.5\n" for i in range(MANY)))
    return path


def _wide_table(path: Path) -> Path:
    names = ",".join(f"m{i}" for i in range(MANY))
    path.write_text(f"step,loss,{names}\n" + "".join(f"{i},1.5,{','.join(['2.5'] * MANY)}\n" for i in range(5)))
    return path


def _events(path: Path) -> Path:
    return write_events(path, scalar_events([(name, i, 1.5, 1.0) for i in range(MANY) for name in ("loss", f"m{i}")]))


def _console(path: Path) -> Path:
    path.write_text("".join(f"step: {i} loss: 1.5 m{i}_x: 2.5\n" for i in range(MANY)))
    return path


def _history(path: Path) -> Path:
    path.write_text(json.dumps({"log_history": [{"step": i, "loss": 1.5, f"m{i}": 2.5} for i in range(MANY)]}))
    return path


def _mmengine(path: Path) -> Path:
    rows = ({"mode": "train", "epoch": 1, "iter": i, "loss": 1.5, f"m{i}": 2.5} for i in range(MANY))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _mlflow(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table runs (run_uuid, name, start_time, lifecycle_stage)")
        connection.execute("create table metrics (key, value, timestamp, run_uuid, step, is_nan)")
        connection.execute("insert into runs values ('a', 'a', 1, 'active')")
        for i in range(MANY):
            for name in ("loss", f"m{i}"):
                connection.execute(f"insert into metrics values ('{name}', 1.5, {i}, 'a', {i}, 0)")
        connection.commit()
    return path


def _trackio(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table metrics (id integer primary key, timestamp, run_name, step, metrics)")
        for i in range(MANY):
            row = json.dumps({"loss": 1.5, f"m{i}": 2.5})
            connection.execute("insert into metrics values (?, '2026-01-01', 'a', ?, ?)", (i, i, row))
        connection.commit()
    return path


def _folder_of_metrics(path: Path) -> Path:
    (path / "metrics").mkdir(parents=True)
    (path / "meta.yaml").write_text("run_id: a\n")
    for name in ("loss", *(f"m{i}" for i in range(MANY))):
        (path / "metrics" / name).write_text("1 1.5 0\n2 1.5 1\n")
    return path


def _tables(path: Path) -> Path:
    (path / "plots/metrics").mkdir(parents=True)
    for name in ("loss", *(f"m{i}" for i in range(MANY))):
        (path / f"plots/metrics/{name}.tsv").write_text(f"step\t{name}\n0\t1.5\n1\t1.5\n")
    return path


@pytest.mark.parametrize(
    ("write", "name", "read"),
    [
        (_rows, "metrics.jsonl", jsonl.read),
        (_long_table, "long.csv", csv.read),
        (_wide_table, "wide.csv", csv.read),
        (_events, "events.out.tfevents.1", tensorboard.read),
        (_console, "train.log", console.read),
        (_history, "trainer_state.json", document.read),
        (_mmengine, "None.log.json", mmengine.read),
        (_mlflow, "mlflow.db", mlflow.read),
        (_trackio, "p.db", trackio.read),
        (_folder_of_metrics, "run", mlruns.read),
        (_tables, "dvclive", dvclive.read),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_of_names_beyond_so_many_nothing_is_kept_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], Path], name: str, read: Read
) -> None:
    for module in (columns, jsonl, csv, tensorboard, console_rows, mlruns, dvclive):
        monkeypatch.setattr(module, "MOST_METRICS", MOST)
    reading = read_one(read, write(tmp_path / name))
    assert len(reading.series) == MOST
    assert reading.series["loss"].height == max(points.height for points in reading.series.values())
    assert [piece for piece in reading.skipped if f"beyond the first {MOST}" in piece.reason]


def test_another_name_on_every_row_takes_seconds_and_not_minutes(tmp_path: Path) -> None:
    """1.2 MB that took 400 s and 3 GB."""
    path = tmp_path / "metrics.jsonl"
    losses = (3 - i / 25_000 + i % 7 / 10 for i in range(25_000))
    rows = (f'{{"step":{i},"loss":{loss},"grad_norm":{1 + i % 5},"m{i}":1}}\n' for i, loss in enumerate(losses))
    path.write_text("".join(rows))
    report = gradtrend.analyze(str(path))
    assert report.sources[0].series == columns.MOST_METRICS
    assert "GT510" in {finding.rule for finding in report.findings}
    assert report.verdict == "stable"


def test_a_name_longer_than_any_is_no_metric_of_a_role(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    row = {"loss": 1.5, "grad.a_" * 20_000 + "norm": 2.5}
    path.write_text("".join(json.dumps({"step": i, **row}) + "\n" for i in range(3)))
    assert len(gradtrend.analyze(str(path)).series) == 1


def test_of_a_line_too_long_head_and_tail_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "LONGEST_PARSED", 400)
    path = tmp_path / "train.log"
    middle = " ".join(f"m{i}: 1{i}" for i in range(1000))
    path.write_text(f"step: 1 loss: 1.5 {middle} grad_norm: 2.5\nstep: 2 loss: 1.25 grad_norm: 2.5\n")
    reading = read_one(console.read, path)
    assert reading.series["loss"].select("step", "value").rows() == [(1, 1.5), (2, 1.25)]
    assert reading.series["grad_norm"]["step"].to_list() == [1, 2]
    assert [(piece.line, piece.reason[:20]) for piece in reading.skipped] == [(1, "the middle of a line")]
    shown = {f"m{i}": 10 ** len(str(i)) + i for i in range(1000)}
    others = {name: points["value"].to_list() for name, points in reading.series.items() if name in shown}
    assert others == {name: [shown[name]] for name in others}  # no number is cut


@pytest.mark.parametrize(("name", "row"), [("a.data", '{{"step": {0}, "loss": 1.5{1}}}'), ("a.csv", ""), ("a.txt", "")])
def test_a_log_is_known_by_rows_longer_than_its_head(tmp_path: Path, name: str, row: str) -> None:
    names = [f"metric_number_{i}" for i in range(8000)]
    text = "".join(row.format(step, "".join(f', "{one}": 2.5' for one in names)) + "\n" for step in range(12))
    if name == "a.csv":
        text = f"step,loss,{','.join(names)}\n" + "".join(f"{i},1.5{',2.5' * len(names)}\n" for i in range(12))
    elif name == "a.txt":
        text = "".join(f"step {i} loss: 1.5 {' '.join(f'{one}: 2.5' for one in names)}\n" for i in range(12))
    (tmp_path / name).write_text(text)
    report = gradtrend.analyze(str(tmp_path / name))
    assert [(one.metric, one.points) for one in report.series if one.role == "loss"] == [("loss", 12)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trainer_state.json", '{"log_history": [{"step": 1, "loss": 1.5}, ' + "[" * 3000 + '"' + '\\"' * 200_000),
        ("a.csv", "step,loss,a" + " " * 200_000 + "b\n" + "1,1.5,2\n" * 20),
    ],
)
def test_no_text_costs_time_by_its_square(tmp_path: Path, name: str, text: str) -> None:
    """Each took minutes."""
    (tmp_path / name).write_text(text)
    report = gradtrend.analyze(str(tmp_path / name))
    assert "loss" in {one.metric for one in report.series}


def test_a_document_of_too_many_values_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_document, "MOST_JSON_VALUES", 10_000)
    path = tmp_path / "trainer_state.json.gz"
    path.write_bytes(gzip.compress(b'{"log_history": [' + b"[]," * 20_000 + b'{"step": 1, "loss": 1.5}]}'))
    with pytest.raises(InputError, match="more than 10,000 values"):
        document.read(path, ReadOptions())


@pytest.mark.parametrize("name", ["train.log.gz", "metrics.jsonl.gz", "metrics.csv.gz", "trainer_state.json.gz"])
def test_a_bomb_is_read_up_to_a_multiple_of_its_size_and_judged(tmp_path: Path, name: str) -> None:
    line = {
        "train.log.gz": "step {} loss 1.5 grad_norm 2.{}\n",
        "metrics.jsonl.gz": '{{"step": {}, "loss": 1.5, "grad_norm": 2.{}}}\n',
        "metrics.csv.gz": "{},1.5,2.{}\n",
        "trainer_state.json.gz": '{{"step": {}, "loss": 1.5, "grad_norm": 2.{}}},\n',
    }[name]
    head = {"metrics.csv.gz": "step,loss,grad_norm\n", "trainer_state.json.gz": '{"log_history": ['}.get(name, "")
    rows = "".join(line.format(i, 1 + i * 7 % 13) for i in range(100))
    path = tmp_path / name
    path.write_bytes(gzip.compress((head + rows + " " * (80 << 20)).encode(), 9))
    report = gradtrend.analyze(str(path))
    assert report.series[0].points == 100
    assert "GT510" in {finding.rule for finding in report.findings}


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_a_file_that_has_become_a_pipe_is_not_waited_for(tmp_path: Path, adapter: Adapter) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    if adapter.name == "dvclive":
        path = tmp_path / "dvclive"
        path.mkdir()
        os.mkfifo(path / "loss.tsv")
    else:
        path = tmp_path / "mlflow.db"
        os.mkfifo(path)
    ended: list[str] = []

    def read() -> None:
        try:
            adapter.read(path, ReadOptions())
        except InputError as error:
            ended.append(error.message)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(20)
    assert len(ended) == 1


def test_the_docs_say_what_the_budgets_are() -> None:
    table = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    mib = [limits.LONGEST_LINE, limits.ALWAYS_EXPANDED, limits.LARGEST_JSON, limits.LARGEST_RECORD]
    mib += [limits.BYTES_AN_ANSWER, limits.LARGEST_SETTINGS]
    said = [f"{size >> 20} MiB" for size in mib]
    said += [f"tail of {limits.LONGEST_PARSED >> 11} KiB each", f"{limits.LARGEST_WANDB >> 30} GiB"]
    counts = [limits.MOST_CONSOLE_LINES, limits.MOST_METRICS, limits.MOST_JSON_VALUES, limits.MOST_RUNS]
    said += [f"{count:,}" for count in counts]
    said += [
        f"{limits.LONGEST_NAME}",
        f"{limits.MOST_GROWTH} times",
        f"{limits.LEAST_STEPS // 1_000_000} million steps",
    ]
    said += [
        f"or {limits.STEPS_A_BYTE} a byte",
        f"{limits.SECONDS_FOR_A_COPY:.0f} s to copy",
        f"{limits.MOST_PAGES} pages",
    ]
    said += [f"{limits.SECONDS_AN_ANSWER:.0f} s and", f"{limits.SECONDS_IN_ALL:.0f} s and"]
    said += [f"{limits.DEEPEST_FOLDER}; {limits.SECONDS_FOR_A_PIPE:.0f} s"]
    assert not [words for words in said if words not in table]
