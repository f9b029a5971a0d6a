"""From the files of a run to its log: what folders say, what is left out, what is noted."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import polars as pl
import pytest

from gradtrend.errors import InputError
from gradtrend.model.runlog import RunLog
from tests.ingest.readings import log_at
from tests.places import EXPLODING, RUNS

LIGHTLY = RUNS / "lightly"


def load(path: Path, **chosen: str) -> RunLog:
    return log_at(path, **chosen)


def norms(log: RunLog) -> list[tuple[int, float]]:
    return log.table.filter(pl.col("role") == "grad_norm").select("step", "value").rows()


def kinds(log: RunLog) -> list[str]:
    return [note.kind for note in log.notes]


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_one_run_in_four_formats_is_one_run() -> None:
    log = load(EXPLODING)
    assert {source.format for source in log.sources} == {"jsonl", "tensorboard", "mlflow", "console"}
    assert log.table.filter(pl.col("role") == "grad_norm")["series"].n_unique() == 1
    assert "sources-disagree" not in kinds(log)
    assert "truncated" not in kinds(log)
    steps = [step for step, _ in norms(log)]
    assert steps == sorted(set(steps))


def test_settings_come_from_all_files_of_the_run(tmp_path: Path) -> None:
    for name in ("hparams.yaml", "metrics.jsonl"):
        shutil.copy(EXPLODING / name, tmp_path)
    alone = load(tmp_path).settings
    assert alone.framework == "lightly-train"
    (tmp_path / "hparams.yaml").write_text("batch_size: 64\nprecision: 16-mixed\n")
    shutil.copy(EXPLODING / "mlflow.db", tmp_path)
    both = load(tmp_path).settings
    assert (both.batch_size, both.precision) == (64, "16-mixed")
    assert both.learning_rate == alone.learning_rate


def test_texts_without_metrics_are_no_sources(tmp_path: Path) -> None:
    write(tmp_path / "metrics.jsonl", [{"step": i, "grad_norm": 1.0} for i in range(10)])
    (tmp_path / "stderr.log").write_text("warning: the loss may be NaN\nmore of the gradient norm\n")
    (tmp_path / "metrics.csv").write_text("step,loss\n")
    (tmp_path / "trainer_state.json").write_text('{"global_step": 0, "log_history": []}')
    write(tmp_path / "train.jsonl", [{"text": "a", "label": "b"}])
    log = load(tmp_path)
    assert [source.path for source in log.sources] == ["metrics.jsonl"]
    assert log.notes == ()


def test_debug_alone_is_evidence(tmp_path: Path) -> None:
    shutil.copytree(LIGHTLY / "broken_uo" / "debug", tmp_path / "debug")
    log = load(tmp_path)
    assert log.table.is_empty()
    assert [report.path for report in log.overflow_reports] == ["debug/underflow_overflow_rank0.log"]
    assert (log.sources, log.notes) == ((), ())


def test_a_text_without_metrics_alone_is_still_shown(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("nothing of interest\n")
    for path in (tmp_path, tmp_path / "train.log"):
        log = load(path)
        assert [source.points for source in log.sources] == [0]


def test_a_broken_log_beside_a_good_one_is_noted(tmp_path: Path) -> None:
    write(tmp_path / "metrics.jsonl", [{"step": i, "grad_norm": 1.0} for i in range(10)])
    (tmp_path / "mlflow.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    log = load(tmp_path)
    assert kinds(log) == ["truncated"]
    assert "mlflow.db" in log.notes[0].message


def test_a_log_without_steps_is_numbered(tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", [{"grad_norm": float(i), "loss": 1.0} for i in range(5)])
    log = load(tmp_path)
    assert norms(log) == [(i, float(i)) for i in range(5)]
    assert kinds(log) == ["no-steps"]


def test_rows_without_a_step_among_others_are_left_out_and_counted(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"step": i, "grad_norm": 1.0, "loss": 1.0} for i in range(10)]
    write(tmp_path / "log.jsonl", [{"config/lr": 0.1}, *rows, {"grad_norm": 9.0}])
    log = load(tmp_path)
    assert [value for _, value in norms(log)] == [1.0] * 10
    (skipped,) = log.sources[0].skipped
    assert (skipped.line, skipped.reason) == (12, "a row without a step")


def test_keras_names_by_folder(tmp_path: Path) -> None:
    for part, loss in (("train", 1.0), ("validation", 2.0)):
        write(tmp_path / part / "log.jsonl", [{"step": i, "epoch_loss": loss, "grad_norm": loss} for i in range(5)])
    log = load(tmp_path)
    assert set(log.table["series"]) == {"epoch_loss", "grad_norm", "val/epoch_loss", "val/grad_norm"}
    assert norms(log) == [(i, 1.0) for i in range(5)]
    loss = log.table.filter(pl.col("role") == "loss")
    assert loss["value"].unique().to_list() == [1.0]


def test_several_norms_with_names_from_a_user(tmp_path: Path) -> None:
    path = write(
        tmp_path / "log.jsonl", [{"step": i, "g": 1.0, "grad_norm": 2.0, "l": 3.0, "eta": 0.1} for i in range(4)]
    )
    log = load(path, metric="g", loss="l", lr="eta")
    roles = {str(name): str(role) for name, role in log.table.select("series", "role").unique().rows()}
    assert roles == {"g": "grad_norm", "grad_norm": "other", "l": "loss", "eta": "lr"}
    with pytest.raises(InputError, match=r"no metric named 'grad_nom' \(--metric\)") as caught:
        load(path, metric="grad_nom")
    assert "grad_norm" in (caught.value.hint or "")


def test_copies_of_trainer_states_in_checkpoints(tmp_path: Path) -> None:
    history = [{"step": i, "loss": 2.0, "grad_norm": 1.0 + i} for i in range(1, 31)]
    for folder, count in (("checkpoint-10", 10), ("checkpoint-30", 30), ("checkpoint-20", 20), (".", 30)):
        path = tmp_path / folder / "trainer_state.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"global_step": count, "log_history": history[:count]}))
    log = load(tmp_path)
    assert norms(log) == [(i, 1.0 + i) for i in range(1, 31)]
    assert log.notes == ()
    assert len(log.sources) == 4


def test_the_first_of_several_errors_is_raised_where_nothing_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b"\xff" * 100)
    with pytest.raises(InputError, match=r"metrics\.jsonl: no line is a JSON object"):
        load(tmp_path)


def test_a_nan_in_one_source_only(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"step": i, "grad_norm": 1.0 + i / 10} for i in range(40)]
    write(tmp_path / "metrics.jsonl", [*rows[:30], *({"step": i, "grad_norm": math.nan} for i in range(30, 40))])
    (tmp_path / "metrics.csv").write_text("step,grad_norm\n" + "".join(f"{i},{1 + i / 10}\n" for i in range(40)))
    (note,) = load(tmp_path).notes
    assert (note.kind, note.first_step) == ("sources-disagree", 30)
