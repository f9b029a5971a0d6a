"""Folder layouts of real loggers and trainers: which folder is a run, and which logs belong to it."""

from __future__ import annotations

import os
import shutil
import socket
import time
from pathlib import Path

import pytest

from gradtrend.errors import InputError
from gradtrend.ingest.runs.finding.find import RunFiles, find_runs
from gradtrend.ingest.runs.finding.tree import found_below
from tests.ingest.readings import runs_at
from tests.ingest.runs.writers import console, csv, events, fit, hf_state, jsonl, wandb
from tests.places import RUNS

JUNK = {
    "truth.jsonl": '{"case": "a", "verdict": ["stable"], "onset": null}\n', "notes.md": "loss",
    "config.yaml": "lr: 1\n",
    "hparams.yaml": "lr: 1\n", "data.txt": "a b c\n", "model.safetensors": "x", "empty.log": "",
}  # fmt: skip


def make(root: Path, *files: str, seed: int = 0) -> None:
    """Files of one fit, each as its name says."""
    one = fit("stable", seed, 20)
    for name in files:
        path = root / name
        if path.name.startswith("events"):
            events(path.parent, one).rename(path)
        elif path.suffix == ".wandb":
            wandb(path.parent.parent, path.stem.removeprefix("run-"), one, path.parent.name.split("-")[2])
        elif path.name in JUNK:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(JUNK[path.name])
        else:
            writer = {"trainer_state.json": hf_state, "metrics.csv": csv, "train.log": console}.get(path.name, jsonl)
            writer(path, one.between(0, 10) if "-500/" in name else one)


def found(root: Path) -> dict[str, list[str]]:
    """The runs below a folder, each with its logs, all relative to it."""
    runs = runs_at(root)
    assert all(run.name == (str(root) if run.folder == root else str(run.folder)) for run in runs)
    return {
        str(run.folder.relative_to(root)): sorted(
            {str(one.path.relative_to(root)) for one in run.readings if one.series}
        )
        for run in runs
    }


LAYOUTS: dict[str, tuple[list[str], dict[str, list[str]]]] = {
    "one folder, several loggers": (
        ["metrics.jsonl", "events.out.tfevents.1.h.1.0", "train.log", "hparams.yaml", "model.safetensors", "notes.md"],
        {".": ["events.out.tfevents.1.h.1.0", "metrics.jsonl", "train.log"]},
    ),
    "a folder of runs with stray files": (
        ["a/metrics.jsonl", "b/metrics.jsonl", "c/train.log", "truth.jsonl", "notes.md", "config.yaml", "data.txt"],
        {"a": ["a/metrics.jsonl"], "b": ["b/metrics.jsonl"], "c": ["c/train.log"]},
    ),
    "transformers": (
        ["trainer_state.json", "checkpoint-500/trainer_state.json", "checkpoint-1000/trainer_state.json",
         "runs/Jan01_00-00-00_host/events.out.tfevents.1.h.1.0", "checkpoint-500/model.safetensors"],
        {".": ["checkpoint-1000/trainer_state.json", "checkpoint-500/trainer_state.json",
               "runs/Jan01_00-00-00_host/events.out.tfevents.1.h.1.0", "trainer_state.json"]},
    ),
    "transformers, checkpoints only": (
        ["checkpoint-500/trainer_state.json", "checkpoint-1000/trainer_state.json"],
        {".": ["checkpoint-1000/trainer_state.json", "checkpoint-500/trainer_state.json"]},
    ),
    "several outputs of transformers": (
        ["bert/checkpoint-5/trainer_state.json", "bert/trainer_state.json", "gpt/checkpoint-5/trainer_state.json"],
        {"bert": ["bert/checkpoint-5/trainer_state.json", "bert/trainer_state.json"],
         "gpt": ["gpt/checkpoint-5/trainer_state.json"]},
    ),
    "Lightning, one version": (
        ["lightning_logs/version_0/metrics.csv", "lightning_logs/version_0/hparams.yaml"],
        {".": ["lightning_logs/version_0/metrics.csv"]},
    ),
    "Lightning, two loggers": (
        ["lightning_logs/version_0/events.out.tfevents.1.h.1.0", "csv_logs/version_0/metrics.csv"],
        {".": ["csv_logs/version_0/metrics.csv", "lightning_logs/version_0/events.out.tfevents.1.h.1.0"]},
    ),
    "Lightning, several versions": (
        ["lightning_logs/version_0/metrics.csv", "lightning_logs/version_1/metrics.csv"],
        {"lightning_logs/version_0": ["lightning_logs/version_0/metrics.csv"],
         "lightning_logs/version_1": ["lightning_logs/version_1/metrics.csv"]},
    ),
    "several runs under a TensorBoard log folder": (
        ["runs/lr1/events.out.tfevents.1.h.1.0", "runs/lr2/events.out.tfevents.1.h.1.0"],
        {"runs/lr1": ["runs/lr1/events.out.tfevents.1.h.1.0"], "runs/lr2": ["runs/lr2/events.out.tfevents.1.h.1.0"]},
    ),
    "add_scalars": (
        ["events.out.tfevents.1.h.1.0", "grad_norms_fc1/events.out.tfevents.1.h.1.1",
         "grad_norms_fc2/events.out.tfevents.1.h.1.2", "loss_train/events.out.tfevents.1.h.1.3"],
        {".": ["events.out.tfevents.1.h.1.0", "grad_norms_fc1/events.out.tfevents.1.h.1.1",
               "grad_norms_fc2/events.out.tfevents.1.h.1.2", "loss_train/events.out.tfevents.1.h.1.3"]},
    ),
    "Keras": (
        ["train/events.out.tfevents.1.h.1.0.v2", "validation/events.out.tfevents.1.h.1.1.v2"],
        {".": ["train/events.out.tfevents.1.h.1.0.v2", "validation/events.out.tfevents.1.h.1.1.v2"]},
    ),
    "several Keras runs": (
        ["logs/a/train/events.out.tfevents.1.h.1.0.v2", "logs/a/validation/events.out.tfevents.1.h.1.1.v2",
         "logs/b/train/events.out.tfevents.1.h.1.0.v2"],
        {"logs/a": ["logs/a/train/events.out.tfevents.1.h.1.0.v2", "logs/a/validation/events.out.tfevents.1.h.1.1.v2"],
         "logs/b": ["logs/b/train/events.out.tfevents.1.h.1.0.v2"]},
    ),
    "runs at two depths": (
        ["first/metrics.jsonl", "group/second/metrics.jsonl", "group/third/metrics.jsonl"],
        {"first": ["first/metrics.jsonl"], "group/second": ["group/second/metrics.jsonl"],
         "group/third": ["group/third/metrics.jsonl"]},
    ),
    "hidden folders, environments and empty files": (
        ["a/metrics.jsonl", ".git/metrics.jsonl", ".cache/x/metrics.jsonl", "node_modules/metrics.jsonl",
         "a/__pycache__/metrics.jsonl", "a/empty.log", "b/empty.log"],
        {"a": ["a/metrics.jsonl"]},
    ),
    "odd names": (
        ["a b/metrics.jsonl", "\u00fc\u4e2d\u6587 \U0001f600/metrics.jsonl", "new\nline/metrics.jsonl",
         "it's $HOME/metrics.jsonl"],
        {name: [f"{name}/metrics.jsonl"]
         for name in ("a b", "\u00fc\u4e2d\u6587 \U0001f600", "new\nline", "it's $HOME")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(tmp_path: Path, layout: str) -> None:
    files, runs = LAYOUTS[layout]
    make(tmp_path, *files)
    for seed, logs in enumerate(runs.values(), start=1):
        make(tmp_path, *logs, seed=seed)
    assert found(tmp_path) == runs


def test_a_run_folder_with_debug_alone(tmp_path: Path) -> None:
    shutil.copytree(RUNS / "lightly" / "broken_uo" / "debug", tmp_path / "a" / "debug")
    make(tmp_path, "b/metrics.jsonl", "b/debug/data.txt")
    assert found(tmp_path) == {"a": [], "b": ["b/metrics.jsonl"]}


def test_an_empty_folder_is_a_run_without_logs(tmp_path: Path) -> None:
    assert find_runs(str(tmp_path)) == (RunFiles(str(tmp_path), tmp_path, ()),)


def test_the_name_is_the_path_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "out/a/metrics.jsonl")
    make(tmp_path, "out/b/metrics.jsonl", seed=1)
    monkeypatch.chdir(tmp_path)
    assert [run.name for run in runs_at("out")] == ["out/a", "out/b"]
    assert [run.name for run in runs_at("./out/")] == ["./out/a", "./out/b"]
    assert [run.name for run in runs_at("out/a/")] == ["out/a/"]
    assert [run.name for run in runs_at("out/a/metrics.jsonl")] == ["out/a/metrics.jsonl"]
    monkeypatch.chdir(tmp_path / "out" / "a")
    assert [run.name for run in runs_at(".")] == ["."]


def test_symlinks_are_followed_and_nothing_is_counted_twice(tmp_path: Path) -> None:
    make(tmp_path, "real/metrics.jsonl")
    make(tmp_path, "runs/a/metrics.jsonl", seed=1)
    for name, target in (("linked", tmp_path / "real"), ("a_again", tmp_path / "runs" / "a"), ("up", tmp_path)):
        (tmp_path / "runs" / name).symlink_to(target)
    (tmp_path / "runs" / "self").symlink_to("self")
    (tmp_path / "runs" / "a" / "back").symlink_to(tmp_path / "runs")
    (tmp_path / "runs" / "a" / "latest.jsonl").symlink_to("metrics.jsonl")
    (tmp_path / "runs" / "gone").symlink_to("nowhere")
    (files,) = find_runs(str(tmp_path / "runs"))
    assert [str(log.path.relative_to(tmp_path / "runs")) for log in files.logs] == [
        "a/metrics.jsonl",
        "linked/metrics.jsonl",
    ]


def test_an_unreadable_sub_folder_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a/metrics.jsonl", "locked/metrics.jsonl")
    real = os.scandir

    def denied(path: Path) -> object:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", denied)
    seen, unseen = runs_at(tmp_path)
    assert (Path(seen.name).name, Path(unseen.name).name) == ("a", "locked")
    assert "Permission denied" in unseen.errors[0].error.message
    with pytest.raises(InputError, match="Permission denied"):
        find_runs(str(tmp_path / "locked"))


def test_source_limits_what_is_read(tmp_path: Path) -> None:
    make(tmp_path, "metrics.jsonl", "train.log", "metrics.csv")
    (run,) = find_runs(str(tmp_path), "csv")
    assert [log.path.name for log in run.logs] == ["metrics.csv"]
    (run,) = find_runs(str(tmp_path / "train.log"), "jsonl")
    assert [log.adapter.name for log in run.logs] == ["jsonl"]


def test_addresses_of_tracking_servers() -> None:
    for address in ("http://localhost:5000", "https://host/prefix"):
        (run,) = find_runs(address)
        assert run.name == address
        assert [log.adapter.name for log in run.logs] == ["mlflow"]
    for address, source in (("nonsense://bucket/run", "auto"), ("http://localhost:5000", "csv")):
        with pytest.raises(InputError, match="not an address"):
            find_runs(address, source)


def test_deep_folders_are_walked_and_deeper_ones_are_told(tmp_path: Path) -> None:
    make(tmp_path, "/".join("abcdefghijklmnop") + "/metrics.jsonl")
    make(tmp_path, "a/b/metrics.jsonl", seed=1)
    assert set(found(tmp_path)) == {"a/b", "/".join("abcdefghijklmnop")}
    make(tmp_path, "/".join("x" * 30) + "/metrics.jsonl", seed=2)
    *_, deepest = runs_at(tmp_path)
    assert "folders deep" in deepest.errors[0].error.message


def test_ten_thousand_files_are_quickly_passed_over(tmp_path: Path) -> None:
    make(tmp_path, "run/metrics.jsonl")
    for folder in range(10):
        (tmp_path / "run" / f"images_{folder}").mkdir()
        for number in range(900):
            os.close(os.open(tmp_path / "run" / f"images_{folder}" / f"{number}.png", os.O_CREAT | os.O_WRONLY))
        for number in range(100):
            (tmp_path / "run" / f"images_{folder}" / f"{number}.txt").write_text("0 0.5 0.5 1 1\n")
    start = time.process_time()
    assert found(tmp_path) == {"run": ["run/metrics.jsonl"]}
    assert time.process_time() - start < 3


def test_runs_beside_a_launchers_log_stay_runs_of_their_own(tmp_path: Path) -> None:
    console(tmp_path / "launch.log", fit("stable", 1, 9))
    for name, seed in (("a", 2), ("b", 3)):
        make(tmp_path, f"{name}/metrics.jsonl", seed=seed)
    assert {Path(run.name).name for run in runs_at(tmp_path)} == {tmp_path.name, "a", "b"}


def test_the_folder_of_add_hparams_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "1795974552.1600895").mkdir()
    for folder in (tmp_path, tmp_path / "1795974552.1600895"):
        events(folder, fit("stable", 0), tags=("train/loss", "" if folder.name[0].isdigit() else "grad_norm"))
    assert len(runs_at(tmp_path)) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_and_sockets_in_a_folder_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "run/metrics.jsonl")
    for name in ("train.log", "events.out.tfevents.1", "mlflow.db", "hparams.yaml", "underflow_overflow_rank0.log"):
        os.mkfifo(tmp_path / "run" / name)
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("run/x.log")
        assert found(tmp_path / "run") == {".": ["metrics.jsonl"]}
        with pytest.raises(InputError, match="neither a file nor a folder"):
            find_runs("run/x.log")


def test_folders_that_all_link_to_one_another_end(tmp_path: Path) -> None:
    make(tmp_path, "d0/metrics.jsonl")
    for i in range(12):
        (tmp_path / f"d{i}").mkdir(exist_ok=True)
        for j in range(12):
            (tmp_path / f"d{i}" / f"to{j}").symlink_to(f"../d{j}")
    began = time.monotonic()
    assert find_runs(str(tmp_path))
    assert time.monotonic() - began < 10


def test_an_empty_path_is_not_the_current_folder() -> None:
    with pytest.raises(InputError, match="empty path"):
        find_runs("")


def test_a_link_to_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").symlink_to(tmp_path / "gone" / "metrics.jsonl")
    (tmp_path / "notes.txt").symlink_to(tmp_path / "gone" / "notes.txt")
    told = found_below(tmp_path, "auto").passed_over
    assert [(one.path.name, one.reason, one.unread) for one in told] == [("metrics.jsonl", "a link to nothing", False)]
