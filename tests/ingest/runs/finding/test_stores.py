"""Each run of a store is a run: which are wanted, how they are named, and what lies beside the store."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gradtrend.errors import EmptyLogError, InputError
from gradtrend.ingest.reading import ReadOptions
from gradtrend.ingest.reading.stored_runs import WantedRuns
from gradtrend.ingest.runs.finding.find import find_runs
from gradtrend.ingest.runs.load import load_run
from gradtrend.ingest.runs.parts import Choice
from gradtrend.ingest.runs.read import read_runs
from gradtrend.model.runlog import RunLog
from tests.places import EXPLODING, RUNS

WANDB_LOG = next(RUNS.glob("wandb/define_metric/wandb/*/*.wandb"))
START = 1_700_000_000_000


def norms(seed: int, steps: int = 20) -> list[float]:
    noise = random.Random(seed)
    return [round(noise.uniform(0.5, 2), 4) for _ in range(steps)]


def mlruns(store: Path, *names: str, experiment: str = "7", start: int = 0, empty: str = "") -> Path:
    """MLflow's file store; run i of an experiment, its id 32 digits, logs `norms(start + i)`."""
    folder = store / experiment
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text(f"artifact_location: x\nexperiment_id: '{experiment}'\nname: exp{experiment}\n")
    for i, name in enumerate(names, start):
        run = folder / run_id(i)
        (run / "metrics").mkdir(parents=True)
        (run / "tags").mkdir()
        meta = f"run_id: {run_id(i)}\nrun_name: {name}\nstart_time: {START + i}\nlifecycle_stage: active\n"
        (run / "meta.yaml").write_text(meta)
        if name != empty:
            lines = [f"{START + step} {value} {step}\n" for step, value in enumerate(norms(i))]
            (run / "metrics" / "grad_norm").write_text("".join(lines))
    return store


def run_id(i: int) -> str:
    return f"a{i:x}" * 16


def jsonl(path: Path, values: list[float], first: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.dumps({"step": step, "grad_norm": value}) for step, value in enumerate(values, first)]
    path.write_text("".join(f"{row}\n" for row in rows))
    return path


def trackio(path: Path, *names: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table metrics (id integer primary key, run_id, timestamp, run_name, step, metrics)")
        for i, name in enumerate(names):
            rows = [
                (f"id{i}", f"2026-01-0{i + 1}T10:00:00+00:00", name, step, json.dumps({"grad_norm": value}))
                for step, value in enumerate(norms(i))
            ]
            insert = "insert into metrics (run_id, timestamp, run_name, step, metrics) values (?,?,?,?,?)"
            connection.executemany(insert, rows)
        connection.commit()
    return path


def logs(path: Path | str, **wanted: object) -> list[RunLog]:
    found = find_runs(str(path), "auto", WantedRuns(**wanted))  # type: ignore[arg-type]
    return [load_run(run, Choice()) for files in found for run in read_runs(files, ReadOptions(), Choice())]


def named(path: Path | str, **wanted: object) -> list[tuple[str, str | None]]:
    return [(log.run.removeprefix(str(path)).lstrip("/"), log.name) for log in logs(path, **wanted)]


def test_each_run_of_a_file_store_the_oldest_first(tmp_path: Path) -> None:
    store = mlruns(tmp_path / "mlruns", "a", "b", "c")
    expected = [(run_id(i), name) for i, name in enumerate("abc")]
    assert named(store) == expected
    assert named(store / "7") == expected
    assert [name for _, name in named(tmp_path)] == ["a", "b", "c"]
    assert named(tmp_path)[0][0] == f"mlruns/{run_id(0)}"
    assert named(store / "7" / run_id(1)) == [("", "b")]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"ids": (run_id(1),)}, "b"), ({"ids": ("b",)}, "b"), ({"ids": ("a1",)}, "b"), ({"ids": ("lo",)}, "d"),
        ({"ids": ("b", "a")}, "ab"), ({"experiment": "8"}, "d"), ({"experiment": "exp8"}, "d"),
        ({"newest": True}, "d"), ({"experiment": "exp7", "newest": True}, "b"), ({"ids": ("a", run_id(0))}, "a"),
    ],
)  # fmt: skip
def test_which_runs_are_wanted(tmp_path: Path, wanted: dict[str, object], found: str) -> None:
    store = mlruns(tmp_path / "mlruns", "a", "b")
    mlruns(store, "long name", experiment="8", start=3)
    assert [(name or "").replace("long name", "d") for _, name in named(store, **wanted)] == list(found)


@pytest.mark.parametrize(
    ("wanted", "message", "hint"),
    [
        ({"ids": ("aloha",)}, "no run aloha", "alpha"), ({"ids": ("a",)}, "fits 3 runs", run_id(2)),
        ({"experiment": "exp9"}, "no run of an experiment exp9", "exp7 (7)"),
        ({"ids": ("alpha", "nobody")}, "no run nobody", "beta"),
    ],
)  # fmt: skip
def test_a_run_that_is_not_there(tmp_path: Path, wanted: dict[str, object], message: str, hint: str) -> None:
    store = mlruns(tmp_path / "mlruns", "alpha", "beta", "gamma")
    with pytest.raises(InputError, match=message) as caught:
        logs(store, **wanted)
    assert hint in (caught.value.hint or "")


def test_all_runs_of_one_name(tmp_path: Path) -> None:
    assert len(named(mlruns(tmp_path / "mlruns", "same", "same", "other"), ids=("same",))) == 2


def test_a_path_without_a_store_has_no_run_to_pick(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no store"):
        logs(jsonl(tmp_path / "metrics.jsonl", norms(0)), ids=("a",))


def test_runs_without_metrics_are_named_and_parents_are_none(tmp_path: Path) -> None:
    store = mlruns(tmp_path / "mlruns", "parent", "child", "crashed", empty="parent")
    shutil.rmtree(store / "7" / run_id(2) / "metrics")
    (store / "7" / run_id(2) / "metrics").mkdir()
    (store / "7" / run_id(1) / "tags" / "mlflow.parentRunId").write_text(run_id(0))
    (log,) = logs(store)
    assert log.name == "child"
    (note,) = log.notes
    assert note.kind == "several-runs"
    assert "crashed" in note.message
    assert "parent" not in note.message
    assert [name for _, name in named(store, ids=("parent",))] == ["child"]


def test_a_deleted_experiment_is_read_where_its_run_is_asked_for(tmp_path: Path) -> None:
    store = mlruns(tmp_path / "mlruns", "a")
    mlruns(store / ".trash", "gone", experiment="9", start=5)
    assert [name for _, name in named(store)] == ["a"]
    assert [name for _, name in named(store, ids=(run_id(5),))] == ["gone"]
    with pytest.raises(InputError, match="no run gone"):
        logs(store, ids=("gone",))


def test_an_empty_store_loses_no_other(tmp_path: Path) -> None:
    mlruns(tmp_path / "one" / "mlruns", "a", empty="a")
    mlruns(tmp_path / "two" / "mlruns", "b")
    first, second = find_runs(str(tmp_path))
    with pytest.raises(EmptyLogError, match="no run with metrics"):
        read_runs(first, ReadOptions(), Choice())
    (run,) = read_runs(second, ReadOptions(), Choice())
    assert load_run(run, Choice()).name == "b"


def test_trackio_alone_in_its_folder(tmp_path: Path) -> None:
    path = trackio(tmp_path / "trackio" / "project.db", "first", "second")
    assert named(path) == [("id0", "first"), ("id1", "second")]
    assert named(tmp_path) == [("trackio/project.db/id0", "first"), ("trackio/project.db/id1", "second")]
    assert named(path, experiment="project", newest=True) == [("id1", "second")]


def wandb(folder: Path, *runs: str) -> Path:
    for run in runs:
        place = folder / run
        place.mkdir(parents=True)
        shutil.copy(WANDB_LOG, place / f"run-{run.rpartition('-')[2]}.wandb")
        (place / "logs").mkdir()
        (place / "logs" / "debug.log").write_text("2026-01-01 INFO MainThread:1 step 1 done\n" * 5)
    (folder / "latest-run").symlink_to(runs[-1])
    (folder / "debug.log").symlink_to(f"{runs[-1]}/logs/debug.log")
    return folder


def test_a_folder_of_weights_and_biases(tmp_path: Path) -> None:
    runs = ("offline-run-20260101_000000-abc", "run-20260102_000000-def", "offline-run-20260103_000000-abc")
    folder = wandb(tmp_path / "wandb", *runs)
    found = named(folder)
    assert [run for run, _ in found] == ["abc", "def"]
    assert all(name for _, name in found)
    assert [run for run, _ in named(tmp_path)] == ["wandb/abc", "wandb/def"]
    resumed = logs(folder, ids=("abc",))[0]
    assert sorted({source.path for source in resumed.sources if source.format == "wandb"}) == [
        f"{run}/run-abc.wandb" for run in (runs[0], runs[2])
    ]
    assert named(folder / runs[1]) == [("", found[1][1])]
    assert named(folder / runs[1] / "run-def.wandb") == [("", found[1][1])]


def test_a_store_in_a_run_folder_gives_the_run_that_its_logs_are_of(tmp_path: Path) -> None:
    mlruns(tmp_path / "mlruns", "a", "b", "c")
    jsonl(tmp_path / "metrics.jsonl", norms(1))
    (log,) = logs(tmp_path)
    assert (log.run, log.name) == (str(tmp_path), "b")
    assert {source.format for source in log.sources} == {"jsonl", "mlflow"}
    (note,) = (note for note in log.notes if note.kind == "several-runs")
    assert "holds 3 runs" in note.message
    assert run_id(0) in note.message


def test_a_logger_that_counts_from_one_agrees(tmp_path: Path) -> None:
    mlruns(tmp_path / "mlruns", "a", "b")
    jsonl(tmp_path / "metrics.jsonl", norms(0), first=1)
    (log,) = logs(tmp_path)
    assert log.name == "a"


def test_a_store_that_no_log_agrees_with_is_all_its_runs(tmp_path: Path) -> None:
    mlruns(tmp_path / "mlruns", "a", "b")
    jsonl(tmp_path / "metrics.jsonl", norms(5))
    assert [name for _, name in named(tmp_path)] == [None, "a", "b"]


def test_two_fits_from_one_seed_are_told_apart_by_their_last_steps(tmp_path: Path) -> None:
    store = mlruns(tmp_path / "mlruns", "whole", "other")
    lines = [f"{START + step} {value} {step}\n" for step, value in enumerate(norms(0))]
    (store / "7" / run_id(1) / "metrics" / "grad_norm").write_text("".join([*lines[:-1], f"{START + 19} nan 19\n"]))
    jsonl(tmp_path / "metrics.jsonl", norms(0))
    assert [name for _, name in named(tmp_path)] == ["whole"]
    (store / "7" / run_id(1) / "metrics" / "grad_norm").write_text("".join(lines[:12]))  # stopped early
    assert [name for _, name in named(tmp_path)] == ["whole"]


def test_logs_of_several_fits_beside_a_store(tmp_path: Path) -> None:
    mlruns(tmp_path / "mlruns", "a", "b", "c")
    jsonl(tmp_path / "lightning_logs" / "version_0" / "metrics.jsonl", norms(0))
    jsonl(tmp_path / "lightning_logs" / "version_1" / "metrics.jsonl", norms(2))
    found = {log.name: sorted(source.format for source in log.sources) for log in logs(tmp_path)}
    assert found == {"a": ["jsonl", "mlflow"], "b": ["mlflow"], "c": ["jsonl", "mlflow"]}


def test_two_stores_of_the_same_fits(tmp_path: Path) -> None:
    mlruns(tmp_path / "mlruns", "a", "b")
    trackio(tmp_path / "trackio" / "project.db", "a", "b", "c")
    found = [(log.name, sorted(source.format for source in log.sources)) for log in logs(tmp_path)]
    assert sorted(found, key=str) == [("a", ["mlflow", "trackio"]), ("b", ["mlflow", "trackio"]), ("c", ["trackio"])]


def test_a_run_asked_for_takes_only_the_logs_that_agree(tmp_path: Path) -> None:
    mlruns(tmp_path / "mlruns", "a", "b")
    jsonl(tmp_path / "metrics.jsonl", norms(1))
    (a,), (b,) = logs(tmp_path, ids=("a",)), logs(tmp_path, ids=("b",))
    assert [source.format for source in a.sources] == ["mlflow"]
    assert {source.format for source in b.sources} == {"mlflow", "jsonl"}


def test_a_store_of_one_run_is_its_folder_s(tmp_path: Path) -> None:
    (log,) = logs(EXPLODING)
    assert (log.run, log.name) == (str(EXPLODING), "exploding_lr_nan")
    (alone,) = logs(EXPLODING / "mlflow.db")
    assert alone.run.startswith(str(EXPLODING / "mlflow.db") + "/")


def test_what_lies_beside_several_runs_is_of_none_of_them(tmp_path: Path) -> None:
    mlruns(tmp_path / "mlruns", "a", "b")
    (tmp_path / "hparams.yaml").write_text("max_grad_norm: 1.0\n")
    assert {log.settings.gradient_clip for log in logs(tmp_path)} == {None}
    shutil.rmtree(tmp_path / "mlruns" / "7" / run_id(1))
    assert logs(tmp_path)[0].settings.gradient_clip == 1.0


def test_loose_logs_of_other_runs_beside_a_store_of_one(tmp_path: Path) -> None:
    mlruns(tmp_path / "mlruns", "a")
    jsonl(tmp_path / "first.jsonl", norms(0))
    jsonl(tmp_path / "second.jsonl", norms(5))
    assert len(logs(tmp_path)) >= 2


def test_a_resumed_run_of_weights_and_biases_beside_a_log_is_one(tmp_path: Path) -> None:
    wandb(tmp_path / "wandb", "offline-run-20260101_000000-abc", "offline-run-20260103_000000-abc")
    (tmp_path / "train.log").write_text("".join(f"step {i} loss 2.0 grad_norm {1 + i % 3}\n" for i in range(20)))
    (log,) = logs(tmp_path)
    assert [source.format for source in log.sources] == ["console", "wandb", "wandb"]


def test_loose_logs_of_weights_and_biases_have_names_of_their_own(tmp_path: Path) -> None:
    for name in ("run-a.wandb", "run-b.wandb"):
        shutil.copy(WANDB_LOG, tmp_path / name)
    assert [run for run, _ in named(tmp_path)] == ["run-a.wandb", "run-b.wandb"]


def formats(log: RunLog) -> list[str]:
    return sorted(source.format for source in log.sources)


@pytest.mark.parametrize("wanted", [{"ids": ("alpha",)}, {"experiment": "proj"}, {"newest": True}])
def test_a_run_asked_for_takes_no_log_of_another_run(tmp_path: Path, wanted: dict[str, object]) -> None:
    trackio(tmp_path / "proj.db", "alpha")
    for i, name in enumerate("bc", 5):
        jsonl(tmp_path / name / "metrics.jsonl", norms(i))
    found = {log.run: formats(log) for log in logs(tmp_path)}
    assert len(found) == 3
    asked = {log.run: formats(log) for log in logs(tmp_path, **wanted)}
    assert asked == (found if "newest" in wanted else {f"{tmp_path}/proj.db/id0": ["trackio"]})


def test_of_a_log_with_several_fits_a_run_takes_its_own(tmp_path: Path) -> None:
    mlruns(tmp_path / "mlruns", "a", "b")
    both = jsonl(tmp_path / "metrics.jsonl", norms(7))
    both.write_text(both.read_text() + jsonl(tmp_path / "other.jsonl", norms(1)).read_text())
    (tmp_path / "other.jsonl").unlink()
    (b,) = logs(tmp_path, ids=("b",))
    assert formats(b) == ["jsonl", "mlflow"]
    assert sum(source.points for source in b.sources if source.format == "jsonl") == 20
    (a,) = logs(tmp_path, ids=("a",))
    assert formats(a) == ["mlflow"]


def test_a_log_beside_a_store_is_read_once_for_all_runs_asked_for(tmp_path: Path) -> None:
    mlruns(tmp_path / "mlruns", *"abcd")
    jsonl(tmp_path / "metrics.jsonl", norms(2))
    found = find_runs(str(tmp_path), "auto", WantedRuns(ids=tuple("acd")))
    assert len([log for files in found for log in files.logs if log.adapter.name == "jsonl"]) == 1
    assert {log.name: formats(log) for log in logs(tmp_path, ids=tuple("acd"))} == {
        "a": ["mlflow"], "c": ["jsonl", "mlflow"], "d": ["mlflow"],
    }  # fmt: skip


def test_the_newest_of_a_store_beside_other_logs(tmp_path: Path) -> None:
    mlruns(tmp_path / "mlruns", *"abc")
    jsonl(tmp_path / "one.jsonl", norms(0))
    jsonl(tmp_path / "two.jsonl", norms(5))
    found = [(log.name, formats(log)) for log in logs(tmp_path, newest=True)]
    assert sorted(found, key=str) == [("c", ["mlflow"]), (None, ["jsonl"])]


def test_a_run_asked_for_that_other_logs_cannot_be_compared_with(tmp_path: Path) -> None:
    """It logged neither a norm nor a loss, or cannot be read."""
    store = mlruns(tmp_path / "mlruns", *"abc")
    jsonl(tmp_path / "metrics.jsonl", norms(0))
    metrics = store / "7" / run_id(1) / "metrics"
    (metrics / "grad_norm").rename(metrics / "accuracy")
    (b,) = logs(tmp_path, ids=("b",))
    assert (b.run, b.name, formats(b)) == (f"{tmp_path}/mlruns/{run_id(1)}", "b", ["mlflow"])
    (store / "7" / run_id(2) / "metrics" / "grad_norm").write_text("no point\n")
    with pytest.raises(InputError, match="no readable metric"):
        logs(tmp_path, ids=("c",))
