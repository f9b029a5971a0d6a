"""Output folders as programs leave them: which runs are in each, and what is said of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gradtrend.pipeline.analyze import analyze_paths
from gradtrend.pipeline.runs import AnalyzeOptions
from tests.ingest.runs.writers import console, csv, events, fit, hf_console, hf_state, jsonl, wandb

Expected = dict[str, str]

SICK, NAN, SOUND, FADING = "exploding", "nan-collapse", "stable", "vanishing"


def verdicts(root: Path) -> Expected:
    """The verdict of each run below a folder by its name there, `.` for the folder itself."""
    reports, failures = analyze_paths((str(root),), AnalyzeOptions())
    assert not failures
    return {report.run.removeprefix(str(root)).lstrip("/") or ".": str(report.verdict) for report in reports}


def fairseq_hydra(root: Path) -> Expected:
    """A log beside a TensorBoard folder for each part of the training, in a folder by date and time."""
    for time, kind, seed in (("12-00-00", SOUND, 1), ("12-30-10", SICK, 2)):
        one = fit(kind, seed)
        place = root / "outputs" / "2026-01-01" / time
        rows = [{"epoch": 1, "loss": f"{x:.4f}", "gnorm": f"{g:.3g}", "num_updates": str(s)} for s, x, g in one.rows()]
        place.mkdir(parents=True)
        head = "[2026-01-01 12:00:00,001][train_inner][INFO] - "
        (place / "hydra_train.log").write_text("".join(f"{head}{json.dumps(row)}\n" for row in rows))
        events(place / "tb" / "train_inner", one, 0, ("loss", "gnorm"))
        events(place / "tb" / "valid", one.every(20), 1, ("loss", ""))
    return {"outputs/2026-01-01/12-00-00": SOUND, "outputs/2026-01-01/12-30-10": SICK}


def detectron2(root: Path) -> Expected:
    """metrics.json, log.txt, an event file, and the logs of the other ranks; results of an evaluation below."""
    one = fit(NAN, 3)
    jsonl(root / "output" / "metrics.json", one)
    events(root / "output", one)
    console(root / "output" / "log.txt", one)
    for rank in (1, 2):
        console(root / "output" / f"log.txt.rank{rank}", one)
    (root / "output" / "inference").mkdir()
    (root / "output" / "inference" / "coco_instances_results.json").write_text('[{"image_id": 1, "score": 0.5}]')
    return {"output": NAN}


def nemo_resumed(root: Path) -> Expected:
    """Event files of both processes in one folder, the first one's texts moved to run_0."""
    one = fit(SICK, 4, 90)
    place = root / "nemo_experiments" / "asr" / "2026-01-01_10-00-00"
    events(place, one.between(0, 40))
    events(place, one.between(40, 90, after=900))
    console(place / "run_0" / "nemo_log_globalrank-0_localrank-0.txt", one.between(0, 40))
    console(place / "nemo_log_globalrank-0_localrank-0.txt", one.between(40, 90))
    (place / "hparams.yaml").write_text("lr: 0.1\n")
    return {"nemo_experiments/asr/2026-01-01_10-00-00": SICK}


def composer_ranks(root: Path) -> Expected:
    """A folder a run, with TensorBoard below it and a text log a rank."""
    for name, kind, seed in (("brave-owl", SOUND, 5), ("calm-fox", FADING, 6)):
        one = fit(kind, seed)
        events(root / "runs" / name / "tensorboard", one)
        for rank in range(2):
            console(root / "runs" / name / "logs" / f"rank{rank}.txt", one)
    return {"runs/brave-owl": SOUND, "runs/calm-fox": FADING}


def ultralytics(root: Path) -> Expected:
    """train, train2, train3 beside val: each train is a fit of its own."""
    for name, kind, seed in (("train", SOUND, 7), ("train2", NAN, 8), ("train3", SOUND, 9)):
        csv(root / "runs" / "detect" / name / "results.csv", fit(kind, seed))
        (root / "runs" / "detect" / name / "args.yaml").write_text("lr0: 0.01\n")
    return {"runs/detect/train": SOUND, "runs/detect/train2": NAN, "runs/detect/train3": SOUND}


def timm_outputs(root: Path) -> Expected:
    """A folder by time and model, a summary.csv in each, and one more with the best results above."""
    for name, kind, seed in (("20260101-101010-resnet50-224", SOUND, 10), ("20260102-101010-vit_base-224", SICK, 11)):
        csv(root / "output" / "train" / name / "summary.csv", fit(kind, seed))
    (root / "output" / "train" / "best.csv").write_text("model,top1\nresnet50,76.1\nvit_base,0.1\n")
    return {
        "output/train/20260101-101010-resnet50-224": SOUND,
        "output/train/20260102-101010-vit_base-224": SICK,
    }


def espnet2(root: Path) -> Expected:
    """train.log with the older train.1.log, and TensorBoard for training and validation."""
    one = fit(NAN, 12, 80)
    place = root / "exp" / "asr_train_conformer"
    console(place / "train.1.log", one.between(0, 40))
    console(place / "train.log", one.between(40, 80))
    events(place / "tensorboard" / "train", one, 0, ("loss", "grad_norm"))
    events(place / "tensorboard" / "valid", one.every(10), 1, ("loss", ""))
    return {"exp/asr_train_conformer": NAN}


def stable_baselines3(root: Path) -> Expected:
    """PPO_1, PPO_2 under one log folder, and monitor files beside them."""
    for number, kind in ((1, SOUND), (2, SICK)):
        events(root / "tb" / f"PPO_{number}", fit(kind, 12 + number), 0, ("train/loss", "train/grad_norm"))
    (root / "0.monitor.csv").write_text('#{"t_start": 1.0}\nr,l,t\n1.0,10,0.5\n2.0,12,0.9\n3.0,14,1.2\n')
    return {"tb/PPO_1": SOUND, "tb/PPO_2": SICK}


def cleanrl_seeds(root: Path) -> Expected:
    """A folder a seed, named by environment, script, seed and time."""
    kinds = {1: SOUND, 2: NAN, 3: SOUND}
    for seed, kind in kinds.items():
        place = root / "runs" / f"CartPole-v1__ppo__{seed}__17000000{seed}0"
        events(place, fit(kind, 20 + seed).at(1.7e9 + seed), 0, ("losses/loss", "losses/grad_norm"))
    return {f"runs/CartPole-v1__ppo__{seed}__17000000{seed}0": kind for seed, kind in kinds.items()}


def keras_tuner(root: Path) -> Expected:
    """A folder a trial with an execution, in it train/ and validation/."""
    for trial, kind in (("00", SOUND), ("01", SICK)):
        one = fit(kind, 30 + int(trial))
        place = root / "logs" / trial / "execution0"
        events(place / "train", one, 0, ("epoch_loss", "epoch_grad_norm"))
        events(place / "validation", one, 1, ("epoch_loss", ""))
        (root / "project" / f"trial_{trial}").mkdir(parents=True)
        (root / "project" / f"trial_{trial}" / "trial.json").write_text('{"trial_id": "0", "score": 0.5}')
    return {"logs/00/execution0": SOUND, "logs/01/execution0": SICK}


def mmengine_resumed(root: Path) -> Expected:
    """A second folder by time, in which the run went on; each has a log and two copies of its scalars."""
    one = fit(SICK, 40, 90)
    for time, part in (("20260101_100000", one.between(0, 50)), ("20260101_120000", one.between(45, 90, after=7200))):
        place = root / "work_dirs" / "rtmdet" / time
        jsonl(place / "vis_data" / "scalars.json", part)
        jsonl(place / "vis_data" / f"{time}.json", part)
        console(place / f"{time}.log", part, form="Iter(train) [{step}/90]  loss: {loss:.4f}  grad_norm: {norm:.4f}")
    (root / "work_dirs" / "rtmdet" / "last_checkpoint").write_text("iter_90.pth")
    return {"work_dirs/rtmdet": SICK}


def slurm_arrays(root: Path) -> Expected:
    """%x-%A_%a.out and .err of an array, and one more job beside it."""
    kinds = (SOUND, SICK, SOUND, NAN)
    for task, kind in enumerate(kinds):
        console(root / "slurm" / f"bert-991_{task}.out", fit(kind, 50 + task))
        (root / "slurm" / f"bert-991_{task}.err").write_text(
            "UserWarning: lr_scheduler.step() before optimizer.step()\n"
        )
    console(root / "slurm" / "slurm-1000.out", fit(FADING, 55))
    (root / "slurm" / "slurm-1000.err").write_text("")
    named = {f"slurm/bert-991_{task}.out": kind for task, kind in enumerate(kinds)}
    return named | {"slurm/slurm-1000.out": FADING}


def llama_factory(root: Path) -> Expected:
    """trainer_log.jsonl, trainer_state.json, running_log.txt, checkpoints and results of one fit."""
    one = fit(NAN, 60, 80)
    place = root / "saves" / "qwen" / "lora"
    rows = [
        {"current_steps": s + 1, "total_steps": 80, "loss": x, "lr": 1e-4, "epoch": s / 40} for s, x, _ in one.rows()
    ]
    place.mkdir(parents=True)
    (place / "trainer_log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    hf_console(place / "running_log.txt", one)
    hf_state(place / "trainer_state.json", one)
    for last in (40, 80):
        hf_state(place / f"checkpoint-{last}" / "trainer_state.json", one.between(0, last))
    (place / "all_results.json").write_text('{"epoch": 2.0, "train_loss": 1.5, "train_runtime": 20.5}')
    return {"saves/qwen/lora": NAN}


def axolotl_checkpoints_alone(root: Path) -> Expected:
    """Checkpoints of two fits; the newest state is the log."""
    for name, kind, seed in (("lora", SOUND, 61), ("full", SICK, 62)):
        one = fit(kind, seed, 90)
        for last in (30, 60, 90):
            hf_state(root / "outputs" / name / f"checkpoint-{last}" / "trainer_state.json", one.between(0, last))
    return {"outputs/full": SICK, "outputs/lora": SOUND}


def ray_tune(root: Path) -> Expected:
    """A folder a trial: result.json, progress.csv and events of the same rows; the experiment's state above."""
    place = root / "ray_results" / "train_fn_2026-01-01_12-00-00"
    kinds = (SOUND, NAN, SICK)
    names = []
    for trial, kind in enumerate(kinds):
        one = fit(kind, 70 + trial)
        names.append(f"train_fn_ab12_0000{trial}_{trial}_lr=0.{trial + 1}_2026-01-01_12-00-00")
        rows = [{"training_iteration": s + 1, "loss": x, "grad_norm": g, "trial_id": "x"} for s, x, g in one.rows()]
        (place / names[-1]).mkdir(parents=True)
        (place / names[-1] / "result.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        table = "".join(f"{row['loss']},{row['grad_norm']},{row['training_iteration']}\n" for row in rows)
        (place / names[-1] / "progress.csv").write_text("loss,grad_norm,training_iteration\n" + table)
        (place / names[-1] / "params.json").write_text('{"lr": 0.1}')
    (place / "experiment_state-2026-01-01_12-00-00.json").write_text('{"trial_data": [["{}", "{}"]]}')
    base = "ray_results/train_fn_2026-01-01_12-00-00"
    return {f"{base}/{name}": kind for name, kind in zip(names, kinds, strict=True)}


def torchrun_attempts(root: Path) -> Expected:
    """attempt_0 and attempt_1 with a folder a rank: the second went on from a checkpoint."""
    one = fit(SICK, 80, 90)
    place = root / "logs" / "none_k2j1"
    for rank in range(2):
        console(place / "attempt_0" / str(rank) / "stderr.log", one.between(0, 45))
        console(place / "attempt_1" / str(rank) / "stderr.log", one.between(40, 90), head="resuming from step_40.pt")
        (place / "attempt_0" / str(rank) / "stdout.log").write_text("")
    return {"logs/none_k2j1": SICK}


def torchtitan(root: Path) -> Expected:
    """A TensorBoard folder a rank, below one by time."""
    one = fit(NAN, 81)
    for rank in (0, 1):
        events(root / "outputs" / "tb" / "20260101-1200" / f"rank_{rank}", one, rank, ("loss/avg", "grad_norm"))
    return {"outputs/tb/20260101-1200": NAN}


def icefall(root: Path) -> Expected:
    """Logs a rank without a suffix, and TensorBoard beside them."""
    one = fit(SOUND, 82)
    for rank in range(4):
        console(root / "exp" / "log" / f"log-train-2026-01-01-12-00-00-{rank}", one)
    events(root / "exp" / "tensorboard", one, 0, ("train/current_loss", "train/grad_norm"))
    return {"exp": SOUND}


def estimator(root: Path) -> Expected:
    """Events of the training in the model's folder, those of its evaluation in eval/."""
    one = fit(FADING, 83)
    events(root / "model_dir", one, 0, ("loss", "grad_norm"))
    events(root / "model_dir" / "eval", one.every(20), 1, ("loss", ""))
    return {"model_dir": FADING}


def dvclive(root: Path) -> Expected:
    """A table a metric."""
    one = fit(SICK, 84)
    place = root / "dvclive" / "plots" / "metrics" / "train"
    place.mkdir(parents=True)
    for name, values in (("loss", one.losses), ("grad_norm", one.norms)):
        rows = "".join(f"{s}\t{v}\n" for s, v in zip(one.steps, values, strict=True))
        (place / f"{name}.tsv").write_text(f"step\t{name}\n{rows}")
    return {".": SICK}


def lightning_trials(root: Path) -> Expected:
    """Optuna's trials as versions of the default logger, and its study beside them."""
    kinds = (SOUND, SOUND, SICK)
    for version, kind in enumerate(kinds):
        place = root / "lightning_logs" / f"version_{version}"
        csv(place / "metrics.csv", fit(kind, 90 + version))
        (place / "hparams.yaml").write_text(f"lr: 0.{version}\n")
    (root / "trials.csv").write_text("number,value,params_lr\n0,0.5,0.1\n1,0.4,0.2\n2,9.1,0.3\n")
    return {f"lightning_logs/version_{version}": kind for version, kind in enumerate(kinds)}


def loggers_first(root: Path) -> Expected:
    """Logger first, run second: tb/exp1 beside csv/exp1."""
    for name, kind, seed in (("exp1", SICK, 100), ("exp2", SOUND, 101)):
        one = fit(kind, seed)
        events(root / "tb" / name, one)
        csv(root / "csv" / name / "metrics.csv", one)
    return {"csv/exp1": SICK, "csv/exp2": SOUND}


def nohup_of_a_sweep(root: Path) -> Expected:
    """One nohup.out of three jobs that print no step."""
    jobs = (fit(SICK, 102), fit(SOUND, 103), fit(NAN, 104))
    form = "loss={loss:.4f} grad_norm={norm:.4f}"
    console(root / "nohup.out", *jobs, head="+ python train.py --lr 0.1", tail="training finished", form=form)
    return {".#1": SICK, ".#2": SOUND, ".#3": NAN}


def nohup_of_transformers(root: Path) -> Expected:
    """Two fits of a Trainer in one file, without steps."""
    hf_console(root / "nohup.out", fit(SOUND, 105), fit(SICK, 106))
    return {".#1": SOUND, ".#2": SICK}


def rotated(root: Path) -> Expected:
    """Pieces of a rotated log, the explosion in the middle one."""
    one = fit(SICK, 107, 90)
    for number, (first, end) in enumerate(((60, 90), (30, 60), (0, 30))):
        console(root / "job" / ("train.log" + (f".{number}" if number else "")), one.between(first, end))
    return {"job": SICK}


def writers_of_one_second(root: Path) -> Expected:
    """Parts whose files are told by their counter alone: .2 comes ahead of .10."""
    one = fit(SICK, 108, 110)
    for part in range(11):
        cut = one.between(part * 10, part * 10 + 10)
        events(root / "run", cut.at(one.began), part)
    return {"run": SICK}


def wandb_with_links(root: Path) -> Expected:
    """Two offline runs, the link to the latest and links to its debug logs."""
    wandb(root / "wandb", "aaaa1111", fit(NAN, 109))
    wandb(root / "wandb", "bbbb2222", fit(SOUND, 110), "20260101_000500")
    latest = "offline-run-20260101_000500-bbbb2222"
    (root / "wandb" / "latest-run").symlink_to(latest, target_is_directory=True)
    (root / "wandb" / "debug.log").symlink_to(f"{latest}/logs/debug.log")
    return {"wandb/aaaa1111": NAN, "wandb/bbbb2222": SOUND}


def wandb_resumed(root: Path) -> Expected:
    """One id, two folders."""
    one = fit(SICK, 111, 90)
    wandb(root / "wandb", "cccc3333", one.between(0, 50))
    wandb(root / "wandb", "cccc3333", one.between(45, 90), "20260101_010000")
    return {"wandb/cccc3333": SICK}


def deep(root: Path) -> Expected:
    """Twelve folders deep."""
    jsonl(root.joinpath(*"abcdefghijkl") / "metrics.jsonl", fit(SICK, 112))
    return {"a/b/c/d/e/f/g/h/i/j/k/l": SICK}


def nested_sweep(root: Path) -> Expected:
    """results/MODEL/SEED, with tables of results at each level."""
    expected = {}
    for model in ("gpt", "mamba"):
        for seed in range(3):
            kind = NAN if (model, seed) == ("mamba", 1) else SOUND
            csv(root / "results" / model / f"seed{seed}" / "log.csv", fit(kind, 120 + seed + 10 * (model == "gpt")))
            expected[f"results/{model}/seed{seed}"] = kind
        (root / "results" / model / "summary.csv").write_text("seed,final_loss\n0,0.3\n1,0.4\n2,0.5\n")
    (root / "results" / "all.csv").write_text("model,seed,loss\ngpt,0,0.3\nmamba,0,0.4\ngpt,1,0.5\n")
    return expected


def data_beside_runs(root: Path) -> Expected:
    """A project: its data have columns that are called loss, gradient and norm."""
    (root / "data" / "raw").mkdir(parents=True)
    (root / "data" / "claims.csv").write_text(
        "id,age,loss\n" + "".join(f"{i},{i % 60},{i * 7 % 90}.5\n" for i in range(50))
    )
    rows = "".join(f"{i},{i % 9 / 9},{1 + i % 7}\n" for i in range(200))
    (root / "data" / "raw" / "sensor.csv").write_text("step,gradient,norm\n" + rows)
    for name, kind, seed in (("base", SOUND, 130), ("large", SICK, 131)):
        jsonl(root / "out" / name / "metrics.jsonl", fit(kind, seed))
        events(root / "out" / name, fit(kind, seed))
    return {"out/base": SOUND, "out/large": SICK}


def three_trackers(root: Path) -> Expected:
    """One loop that reports to TensorBoard in runs/ and to W&B, and prints."""
    one = fit(FADING, 132)
    events(root / "runs" / "Jan01_12-00-00_host", one)
    wandb(root / "wandb", "dddd4444", one)
    console(root / "console.log", one.every(5))
    return {".": FADING}


def transformers_resumed(root: Path) -> Expected:
    """Two event folders, copies of the state, and the state of an attempt that was overtaken."""
    one, failed = fit(SOUND, 133, 100), fit(NAN, 133, 100)
    hf_state(root / "out" / "checkpoint-80" / "trainer_state.json", failed.between(0, 80))
    for last in (30, 60, 90):
        hf_state(root / "out" / f"checkpoint-{last}" / "trainer_state.json", one.between(0, last))
    hf_state(root / "out" / "trainer_state.json", one)
    events(root / "out" / "runs" / "Jan01_10-00-00_host", failed.between(0, 85))
    events(root / "out" / "runs" / "Jan01_11-00-00_host", one.between(60, 100, after=3600), 1)
    return {"out": SOUND}


def fits_in_one_writer_folder(root: Path) -> Expected:
    """Two fits whose writers share a folder."""
    events(root / "logs", fit(NAN, 134))
    events(root / "logs", fit(SOUND, 135).at(1_790_009_000.0), 1)
    return {"logs#1": NAN, "logs#2": SOUND}


def appended(root: Path) -> Expected:
    """Two fits in one metrics.jsonl, and their lines in one log beside it."""
    jsonl(root / "metrics.jsonl", fit(SICK, 136), fit(SOUND, 137))
    console(root / "train.log", fit(SICK, 136), fit(SOUND, 137))
    return {".#1": SICK, ".#2": SOUND}


def rolled_back(root: Path) -> Expected:
    """A run that went back to a checkpoint, with other values from there on: one run, the later part judged."""
    jsonl(root / "metrics.jsonl", fit(NAN, 138, 60), fit(SOUND, 139, 100).between(20, 100))
    return {".": SOUND}


def copied(root: Path) -> Expected:
    """A folder and its copy."""
    jsonl(root / "exp" / "metrics.jsonl", fit(SICK, 140))
    shutil.copytree(root / "exp", root / "exp_backup")
    jsonl(root / "other" / "metrics.jsonl", fit(SOUND, 141))
    return {"exp": SICK, "other": SOUND}


def equal_seeds(root: Path) -> Expected:
    """Two fits that agree to the last digit up to the NaN of one."""
    jsonl(root / "a" / "metrics.jsonl", fit(SOUND, 142))
    jsonl(root / "b" / "metrics.jsonl", fit(NAN, 142))
    return {"a": SOUND, "b": NAN}


def launcher_prints_all(root: Path) -> Expected:
    """A launcher's log holds what its jobs print, one after another: they are the same fits."""
    jobs = {"job_a": fit(SOUND, 143), "job_b": fit(SICK, 144)}
    for name, one in jobs.items():
        jsonl(root / name / "metrics.jsonl", one)
    console(root / "launch.log", *jobs.values(), head="launching job")
    return {"job_a": SOUND, "job_b": SICK}


LAYOUTS: tuple[Callable[[Path], Expected], ...] = (
    fairseq_hydra, detectron2, nemo_resumed, composer_ranks, ultralytics, timm_outputs, espnet2, stable_baselines3,
    cleanrl_seeds, keras_tuner, mmengine_resumed, slurm_arrays, llama_factory, axolotl_checkpoints_alone, ray_tune,
    torchrun_attempts, torchtitan, icefall, estimator, dvclive, lightning_trials, loggers_first, nohup_of_a_sweep,
    nohup_of_transformers, rotated, writers_of_one_second, wandb_with_links, wandb_resumed, deep, nested_sweep,
    data_beside_runs, three_trackers, transformers_resumed, fits_in_one_writer_folder, appended, rolled_back, copied,
    equal_seeds, launcher_prints_all,
)  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_the_runs_of_a_layout(tmp_path: Path, layout: Callable[[Path], Expected]) -> None:
    expected = layout(tmp_path)
    assert verdicts(tmp_path) == {name.replace(".#", "#"): verdict for name, verdict in expected.items()}
