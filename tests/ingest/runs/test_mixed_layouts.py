"""Arrangements of several programs, loggers, attempts and copies in one folder: which runs there are."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gradtrend.pipeline.analyze import analyze_paths
from gradtrend.pipeline.runs import AnalyzeOptions
from tests.ingest.runs.test_layouts import NAN, SICK, SOUND, Expected, verdicts
from tests.ingest.runs.writers import console, csv, events, fit, hf_console, hf_state, jsonl, wandb

STEPLESS = "loss={loss:.4f} grad_norm={norm:.5f}"


def attempt_from_scratch(root: Path) -> Expected:
    """The first attempt was lost before a checkpoint, the second began again with the same seed: one run."""
    one = fit(SICK, 1, 90)
    for attempt, part in enumerate((one.between(0, 30), one)):
        console(root / "logs" / "none_x" / f"attempt_{attempt}" / "0" / "stdout.log", part)
    return {"logs/none_x": SICK}


def attempts_of_other_values(root: Path) -> Expected:
    """Both attempts began at the first step, with other values: two fits."""
    console(root / "logs" / "none_x" / "attempt_0" / "0" / "stdout.log", fit(NAN, 2))
    console(root / "logs" / "none_x" / "attempt_1" / "0" / "stdout.log", fit(SOUND, 3))
    return {"logs/none_x/attempt_0/0": NAN, "logs/none_x/attempt_1/0": SOUND}


def versions_of_two_loggers(root: Path) -> Expected:
    """Two fits, each with a version of both loggers."""
    for version, one in enumerate((fit(SICK, 4), fit(SOUND, 5))):
        csv(root / "lightning_logs" / f"version_{version}" / "metrics.csv", one)
        events(root / "tb_logs" / f"version_{version}", one)
    return {"lightning_logs/version_0": SICK, "lightning_logs/version_1": SOUND}


def versions_of_which_one_goes_on(root: Path) -> Expected:
    """version_0 is a fit, version_1 another, version_2 goes on from version_1."""
    other = fit(SICK, 7, 90)
    events(root / "lightning_logs" / "version_0", fit(SOUND, 6, 40))
    events(root / "lightning_logs" / "version_1", other.between(0, 50, after=1000))
    events(root / "lightning_logs" / "version_2", other.between(50, 90, after=2000))
    return {"lightning_logs/version_0": SOUND, "lightning_logs/version_1": SICK}


def one_console_for_two_outputs(root: Path) -> Expected:
    """nohup.out has both fits, without steps, and lies beside their folders."""
    both = {"out1": fit(SOUND, 8), "out2": fit(NAN, 9)}
    for name, one in both.items():
        hf_state(root / name / "trainer_state.json", one)
        events(root / name / "runs" / "Jan01_10-00-00_host", one)
    hf_console(root / "nohup.out", *both.values())
    return {"out1": SOUND, "out2": NAN}


def compressed_pieces(root: Path) -> Expected:
    """Rotated and compressed pieces."""
    one = fit(SICK, 10, 90)
    console(root / "train.log", one.between(60, 90))
    for number, (first, end) in ((1, (30, 60)), (2, (0, 30))):
        console(root / "piece", one.between(first, end))
        (root / f"train.log.{number}.gz").write_bytes(gzip.compress((root / "piece").read_bytes()))
    (root / "piece").unlink()
    return {".": SICK}


def pieces_without_steps(root: Path) -> Expected:
    """Rotated pieces whose rows have no step."""
    one = fit(SICK, 11, 90)
    for number, (first, end) in enumerate(((60, 90), (30, 60), (0, 30))):
        console(root / ("train.log" + (f".{number}" if number else "")), one.between(first, end), form=STEPLESS)
    return {".": SICK}


def a_folder_a_rank(root: Path) -> Expected:
    """rank_0, rank_1: the norms differ a little."""
    one = fit(NAN, 12)
    near = type(one)(one.steps, tuple(norm * (1 + i % 3 / 100) for i, norm in enumerate(one.norms)), one.losses)
    jsonl(root / "exp" / "rank_0" / "metrics.jsonl", one)
    jsonl(root / "exp" / "rank_1" / "metrics.jsonl", near)
    return {"exp": NAN}


def training_and_validation_tables(root: Path) -> Expected:
    """train.csv and val.csv have columns of one name."""
    csv(root / "exp" / "train.csv", fit(SICK, 13))
    csv(root / "exp" / "val.csv", fit(SOUND, 14).every(5), columns=("loss",))
    return {"exp": SICK}


def output_used_twice(root: Path) -> Expected:
    """A second fit into one output folder: its state and checkpoints, and the event folder of the first."""
    first, second = fit(NAN, 15), fit(SOUND, 16, 100)
    events(root / "out" / "runs" / "Jan01_10-00-00_host", first)
    events(root / "out" / "runs" / "Jan02_10-00-00_host", second.at(1_790_100_000.0))
    hf_state(root / "out" / "trainer_state.json", second)
    hf_state(root / "out" / "checkpoint-50" / "trainer_state.json", second.between(0, 50))
    return {"out/runs/Jan01_10-00-00_host": NAN, "out": SOUND}


def trackers_of_two_fits(root: Path) -> Expected:
    """wandb/ holds both runs, each output folder one."""
    for i, (name, kind) in enumerate((("out_a", SOUND), ("out_b", SICK))):
        one = fit(kind, 17 + i)
        hf_state(root / name / "trainer_state.json", one)
        wandb(root / "wandb", f"eeee000{i}", one, f"2026010{i + 1}_000000")
    return {"out_a": SOUND, "out_b": SICK}


def sacred(root: Path) -> Expected:
    """runs/1, runs/2: metrics.json by metric, cout.txt, config.json."""
    for number, kind in ((1, SICK), (2, SOUND)):
        one, place = fit(kind, 20 + number), root / "runs" / str(number)
        place.mkdir(parents=True)
        series = {"loss": one.losses, "grad_norm": one.norms}
        document = {name: {"steps": list(one.steps), "values": list(values)} for name, values in series.items()}
        (place / "metrics.json").write_text(json.dumps(document))
        console(place / "cout.txt", one)
        (place / "config.json").write_text('{"lr": 0.1, "seed": 3}')
    return {"runs/1": SICK, "runs/2": SOUND}


def one_name_on_two_days(root: Path) -> Expected:
    """logs/DATE/train.log of two days: two fits."""
    console(root / "logs" / "2026-01-01" / "train.log", fit(NAN, 23))
    console(root / "logs" / "2026-01-02" / "train.log", fit(SOUND, 24))
    return {"logs/2026-01-01": NAN, "logs/2026-01-02": SOUND}


def latest_is_a_link(root: Path) -> Expected:
    """runs/latest is a link to one of them."""
    jsonl(root / "runs" / "x" / "metrics.jsonl", fit(SICK, 25))
    jsonl(root / "runs" / "y" / "metrics.jsonl", fit(SOUND, 26))
    (root / "runs" / "latest").symlink_to("x", target_is_directory=True)
    return {"runs/x": SICK, "runs/y": SOUND}


def jobs_of_one_run(root: Path) -> Expected:
    """A job that was sent again under another number, and went on from a checkpoint."""
    one = fit(SICK, 27, 100)
    console(root / "slurm-100.out", one.between(0, 50))
    console(root / "slurm-117.out", one.between(45, 100), head="Resuming from checkpoint step_45.pt")
    return {".": SICK}


def two_chains_of_jobs(root: Path) -> Expected:
    """Two jobs that both went on: which went on from which cannot be told, and every log is judged."""
    a, b = fit(SOUND, 28, 100), fit(SICK, 29, 100)
    console(root / "a" / "x.log", a.between(0, 50))
    console(root / "b" / "x.log", b.between(0, 50))
    console(root / "c" / "x.log", a.between(50, 100))
    console(root / "d" / "x.log", b.between(50, 100))
    return {"a": SOUND, "b": SOUND, "c": SOUND, "d": SICK}


def rotated_json_lines(root: Path) -> Expected:
    """metrics.jsonl.1 is the older piece of metrics.jsonl."""
    one = fit(SICK, 30, 90)
    jsonl(root / "metrics.jsonl.1", one.between(0, 50))
    jsonl(root / "metrics.jsonl", one.between(50, 90))
    return {".": SICK}


def states_by_step(root: Path) -> Expected:
    """Checkpoints in folders of another name."""
    one = fit(SICK, 31, 90)
    for last in (30, 60, 90):
        hf_state(root / "ckpts" / f"step{last}" / "trainer_state.json", one.between(0, last))
    return {"ckpts/step90": SICK}


def training_and_evaluation_logs(root: Path) -> Expected:
    """train.log and eval.log in logs/."""
    console(root / "exp" / "logs" / "train.log", fit(NAN, 32))
    console(root / "exp" / "logs" / "eval.log", fit(SOUND, 33).every(10), form="step {step} | loss {loss:.4f}")
    return {"exp": NAN}


def epochs_alone(root: Path) -> Expected:
    """Tables of epochs in folders of models and seeds."""
    kinds = {"cnn/s0": SOUND, "cnn/s1": SICK, "mlp/s0": SOUND}
    for i, (name, kind) in enumerate(kinds.items()):
        one = fit(kind, 34 + i)
        rows = "".join(f"{s + 1},{x},{g}\n" for s, x, g in one.rows())
        (root / name).mkdir(parents=True)
        (root / name / "history.csv").write_text("epoch,loss,grad_norm\n" + rows)
    return {**kinds}


def copies_in_an_archive(root: Path) -> Expected:
    """An archive of what lies beside it, and a run of its own there."""
    jsonl(root / "exp1" / "metrics.jsonl", fit(SICK, 37))
    jsonl(root / "exp2" / "metrics.jsonl", fit(SOUND, 38))
    shutil.copytree(root / "exp1", root / "archive" / "exp1")
    jsonl(root / "archive" / "exp0" / "metrics.jsonl", fit(NAN, 39))
    return {"exp1": SICK, "exp2": SOUND, "archive/exp0": NAN}


def a_run_in_a_run(root: Path) -> Expected:
    """A run and, in its folder, a second one that was begun from it."""
    jsonl(root / "pretrain" / "metrics.jsonl", fit(SOUND, 40))
    jsonl(root / "pretrain" / "finetune" / "metrics.jsonl", fit(SICK, 41))
    return {"pretrain": SOUND, "pretrain/finetune": SICK}


def events_of_loss_and_norm_apart(root: Path) -> Expected:
    """One writer for the losses, another for the norms."""
    one = fit(SICK, 42)
    events(root / "exp" / "scalars", one, 0, ("train/loss", ""))
    events(root / "exp" / "gradients", one, 1, ("", "train/grad_norm"))
    return {"exp": SICK}


def a_failed_start(root: Path) -> Expected:
    """A first try that stopped after two steps, and the run in the next folder: too few steps to call it a part."""
    events(root / "runs" / "Jan01_10-00-00_host", fit(SOUND, 43).between(0, 2))
    events(root / "runs" / "Jan01_11-00-00_host", fit(SICK, 43).at(1_790_003_600.0))
    return {"runs/Jan01_10-00-00_host": "undetermined", "runs/Jan01_11-00-00_host": SICK}


def stepless_jobs_without_a_word(root: Path) -> Expected:
    """Two trainings in one log, neither with steps nor with a word between them: one series, and its last verdict."""
    console(root / "nohup.out", fit(SOUND, 44), fit(SOUND, 45), form=STEPLESS)
    return {".": SOUND}


LAYOUTS: tuple[Callable[[Path], Expected], ...] = (
    attempt_from_scratch, attempts_of_other_values, versions_of_two_loggers, versions_of_which_one_goes_on,
    one_console_for_two_outputs, compressed_pieces, pieces_without_steps, a_folder_a_rank,
    training_and_validation_tables, output_used_twice, trackers_of_two_fits, sacred, one_name_on_two_days,
    latest_is_a_link, jobs_of_one_run, two_chains_of_jobs, rotated_json_lines, states_by_step,
    training_and_evaluation_logs, epochs_alone, copies_in_an_archive, a_run_in_a_run, events_of_loss_and_norm_apart,
    a_failed_start, stepless_jobs_without_a_word,
)  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_the_runs_of_a_layout(tmp_path: Path, layout: Callable[[Path], Expected]) -> None:
    expected = layout(tmp_path)
    assert verdicts(tmp_path) == expected


def findings(root: Path) -> dict[str, set[str]]:
    """The rules that fired for each run."""
    reports, _ = analyze_paths((str(root),), AnalyzeOptions())
    return {Path(report.run).name: {finding.rule for finding in report.findings} for report in reports}


def test_what_could_be_read_in_two_ways_is_said(tmp_path: Path) -> None:
    two_chains_of_jobs(tmp_path)
    found = findings(tmp_path)
    assert {name for name, rules in found.items() if "GT525" in rules} == {"c", "d"}
    reports, _ = analyze_paths((str(tmp_path),), AnalyzeOptions())
    message = next(f.message for report in reports for f in report.findings if f.rule == "GT525")
    assert "a/x.log" in message
    assert "b/x.log" in message


def test_what_was_not_used_is_said(tmp_path: Path) -> None:
    nested = tmp_path / "results"
    for seed in range(2):
        csv(nested / f"seed{seed}" / "log.csv", fit(SOUND, 50 + seed))
    (nested / "summary.csv").write_text("seed,final_loss,best_step\n0,0.3,50\n1,0.4,52\n")
    (nested / "seed1" / "eval.csv").write_text("")
    reports, _ = analyze_paths((str(tmp_path),), AnalyzeOptions())
    said = " ".join(f.message for report in reports for f in report.findings if f.rule == "GT524")
    assert "results/summary.csv (no gradient norm" in said
    assert "results/seed1/eval.csv (empty)" in said
