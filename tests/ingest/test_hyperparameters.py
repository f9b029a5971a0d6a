"""The hyperparameters of runs as loggers leave them: their own files, and damaged ones."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gradtrend.ingest.runs.load import load_run
from gradtrend.ingest.runs.parts import Choice
from tests.ingest.readings import log_at, runs_at
from tests.places import EXPLODING, LIGHTLY, RUNS

ROWS = "".join(f'{{"step": {i}, "loss": {9 - i / 9}, "grad_norm": {1 + i % 3}}}\n' for i in range(20))


def given(path: Path) -> dict[str, Any]:
    """What the one run at a path was given."""
    (run,) = runs_at(path)
    return dict(load_run(run, Choice(), hyperparameters=True).hyperparameters)


def write(folder: Path, **files: str) -> Path:
    """A run folder with a log, and files whose names have `__` for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text(ROWS)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def test_a_verdict_needs_none(tmp_path: Path) -> None:
    assert log_at(write(tmp_path, hparams__json='{"lr": 0.1}')).hyperparameters == ()


@pytest.mark.parametrize("name", ["hparams__json", "config__json", "params__json", "args__json", "training_args__json"])
def test_json_beside_the_log(tmp_path: Path, name: str) -> None:
    assert given(write(tmp_path, **{name: '{"optim": {"lr": 1e-3}, "bf16": true}'})) == {"optim/lr": 1e-3, "bf16": True}
    assert given(write(tmp_path, **{name: '{"optim": {"lr": 1e-'})) == {}
    assert given(write(tmp_path, **{name: "[1, 2]"})) == {}


@pytest.mark.parametrize("name", ["hparams__yaml", "config__yaml", "config__yml", "params__yaml"])
def test_yaml_beside_the_log(tmp_path: Path, name: str) -> None:
    assert given(write(tmp_path, **{name: "optim:\n  lr: 0.001\nbf16: true\n"})) == {"optim/lr": 1e-3, "bf16": True}
    assert given(write(tmp_path, **{name: "a: &a\n  b: *a\n"})) == {}
    assert given(write(tmp_path, **{name: "a: [\n"})) == {}


def test_what_a_logger_wrote_wins_over_what_anybody_may_have(tmp_path: Path) -> None:
    assert given(write(tmp_path, config__json='{"lr": 1, "n": 2}', hparams__yaml="lr: 3\n")) == {"lr": 3, "n": 2}


def test_hydra(tmp_path: Path) -> None:
    write(tmp_path / ".hydra", config__yaml="optim:\n  lr: 0.1\n  wd: 0\n", overrides__yaml="- optim.lr=0.3\n- +x=1\n")
    (tmp_path / ".hydra" / "metrics.jsonl").unlink()
    assert given(write(tmp_path)) == {"optim/lr": "0.3", "optim/wd": 0, "x": "1"}


def test_ray_tune(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"training_iteration": i, "loss": 9 - i, "config": {"lr": 0.2}}) + "\n" for i in range(9))
    write(tmp_path, params__json='{"lr": 0.1, "layers": 3}', result__json=rows)
    (tmp_path / "metrics.jsonl").unlink()
    assert given(tmp_path) == {"lr": 0.1, "layers": 3}
    (tmp_path / "params.json").unlink()
    assert given(tmp_path) == {"lr": 0.2}


def test_rows_that_say_it(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "metrics.jsonl").write_text('{"config": {"lr": 0.1, "model": {"depth": 12}}}\n' + ROWS)
    assert given(tmp_path) == {"lr": 0.1, "model/depth": 12}


def test_the_config_above_several_runs_tells_nothing_of_one(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("lr: [0.1, 0.2]\n")
    for name in ("a", "b"):
        write(tmp_path / name, hparams__json=f'{{"who": "{name}"}}')
        rows = ROWS if name == "a" else ROWS.replace('"grad_norm": 1', '"grad_norm": 7')
        (tmp_path / name / "metrics.jsonl").write_text(rows)
    found = [dict(load_run(run, Choice(), True).hyperparameters) for run in runs_at(tmp_path)]
    assert sorted(found, key=str) == [{"who": "a"}, {"who": "b"}]


def test_files_beside_several_logs_are_of_none(tmp_path: Path) -> None:
    (tmp_path / "hparams.json").write_text('{"lr": 0.1}')
    (tmp_path / "a.jsonl").write_text(ROWS)
    (tmp_path / "b.jsonl").write_text(ROWS.replace('"grad_norm": 1', '"grad_norm": 7'))
    runs = runs_at(tmp_path)
    assert len(runs) == 2
    assert [load_run(run, Choice(), True).hyperparameters for run in runs] == [(), ()]


def test_lightly_train() -> None:
    found = given(LIGHTLY / "sparse")
    assert (found["model_args/lr"], found["precision"], found["transform_args/image_size"]) == (
        0.001,
        "32-true",
        "[32, 32]",
    )


def test_mlflow_keeps_text(tmp_path: Path) -> None:
    shutil.copy(EXPLODING / "mlflow.db", tmp_path / "mlflow.db")
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as store:
        (run,) = store.execute("select run_uuid from runs").fetchone()
        params = [("opt.lr", "0.01"), ("clip", "None"), ("api_key", "x")]
        store.executemany("insert into params (key, value, run_uuid) values (?, ?, ?)", [(*p, run) for p in params])
        store.commit()
    found = given(tmp_path / "mlflow.db")
    assert (found["opt.lr"], found["clip"]) == ("0.01", "None")
    assert found["api_key"] == "(left out)"


def test_wandb(tmp_path: Path) -> None:
    from wandb.proto import wandb_internal_pb2 as proto

    from tests.ingest.formats.wandb.test_reader import row
    from tests.ingest.formats.wandb.test_reader import write as write_records

    assert given(RUNS / "wandb" / "commit_false") == {"lr": 0.001}
    run, late = proto.Record(), proto.Record()
    run.run.run_id = "r1"
    for key, value in {"lr": 0.1, "optim": {"name": "adam"}, "gone": 1, "_wandb": {"t": {}}, "hf_token": "abc"}.items():
        run.run.config.update.add(key=key, value_json=json.dumps(value))
    run.run.config.update.add(key="broken", value_json="{")
    late.config.update.add(key="lr", value_json="0.3")
    late.config.remove.add(key="gone")
    rows = [row(i, {"loss": 9.0 - i, "grad_norm": 1.0}) for i in range(9)]
    path = write_records(tmp_path / "run-r1.wandb", [run.SerializeToString(), *rows, late.SerializeToString()])
    assert given(path) == {"lr": 0.3, "optim/name": "adam", "hf_token": "(left out)", "broken": None}
    whole = path.read_bytes()
    for cut in range(8, len(whole) - 300, 97):
        path.write_bytes(whole[:cut])
        for one in runs_at(path)[0].readings:
            assert set(one.given) <= {"lr", "optim", "gone", "hf_token", "broken"}


def test_trackio(tmp_path: Path) -> None:
    real = RUNS / "trackio" / "two_runs" / "trackio" / "toy.db"
    found = [dict(load_run(run, Choice(), True).hyperparameters) for run in runs_at(real)]
    assert found == [{"lr": 0.001}] * 2
    for statement in ("update configs set config = '{'", "drop table configs"):
        copy = tmp_path / "toy.db"
        shutil.copy(real, copy)
        with closing(sqlite3.connect(copy)) as store:
            store.execute(statement)
            store.commit()
        assert [load_run(run, Choice(), True).hyperparameters for run in runs_at(copy)] == [(), ()]


def test_dvclive() -> None:
    assert given(RUNS / "dvclive" / "one_table_a_metric") == {"lr": 0.003, "max_grad_norm": 1.0}


def test_tensorboard_s_hparams(tmp_path: Path) -> None:
    from tensorboardX import SummaryWriter
    from tensorboardX.summary import hparams

    words = {"lr": 0.1, "opt": "adam", "nesterov": True, "layers": 3, "api_key": "x"}
    writer = SummaryWriter(str(tmp_path))
    for event in hparams(words, {"loss": 1.0}):
        writer.file_writer.add_summary(event)
    for step in range(20):
        writer.add_scalar("grad_norm", 1.0 + step % 3, step)
        writer.add_scalar("loss", 9.0 - step / 9, step)
    writer.close()
    (path,) = tmp_path.iterdir()
    assert given(tmp_path) == {"lr": 0.1, "opt": "adam", "nesterov": True, "layers": 3, "api_key": "(left out)"}
    whole = path.read_bytes()
    start = whole.index(b"session_start_info")
    for at in range(start - 20, start + 200, 17):  # a damaged record is passed over as a whole
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert given(tmp_path) in (
            {},
            {"lr": 0.1, "opt": "adam", "nesterov": True, "layers": 3, "api_key": "(left out)"},
        )
