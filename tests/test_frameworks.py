"""What README says of LightlyTrain, Lightning, Trainer, Keras and a loop of one's own.

Each snippet trains with the real library, clipped hard, and its log is judged by norms from before the clipping.

Where a library is not installed its test is skipped, and fails in CI, which installs them all.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradtrend
from tests.places import LIGHTLY
from tests.test_readme import README, blocks, page

pytestmark = pytest.mark.slow
TABLE = README.split("\n## Your training\n")[1].split("\n## ")[0]
CLIPPED = "GT501"
MODEL = """
import torch

torch.manual_seed(0)
inputs = torch.randn(320, 4)
labels = inputs @ torch.tensor([[1.0], [-2.0], [3.0], [0.5]]) + 0.1 * torch.randn(320, 1)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
"""
LIGHTNING = """
from lightning.pytorch import LightningModule


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.model = model

    def training_step(self, batch, number):
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.2)


batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, labels), batch_size=8)
"""
TRAINER = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
config = GPT2Config(vocab_size=16, n_positions=8, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
rows = (torch.arange(8) + torch.randint(0, 16, (160, 1))) % 16
data = [{"input_ids": row, "labels": row} for row in rows]
"""


def needs(*libraries: str) -> None:
    """Skip where a library is missing, but in CI."""
    missing = [name for name in libraries if importlib.util.find_spec(name) is None]
    if missing and os.environ.get("CI"):
        pytest.fail(f"{', '.join(missing)} not installed, and CI has to run what README shows")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (pip install '.[test]')")


def train(folder: Path, program: str) -> None:
    """Run a script as its user does, on the processor and without asking a hub."""
    (folder / "train.py").write_text(program, encoding="utf-8")
    quiet = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "KERAS_BACKEND": "torch"}
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=folder, env=os.environ | quiet, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def check_judged(path: Path, metric: str, clip: float) -> None:
    """The log is judged, by norms that are not those after clipping."""
    report = gradtrend.analyze(path)
    assert report.verdict == "stable"
    assert CLIPPED not in {finding.rule for finding in report.findings}
    (norm,) = (one for one in report.series if one.metric == metric)
    assert norm.role == "grad_norm"
    assert norm.points >= 30
    assert norm.peak is not None
    assert norm.peak > 2 * clip


def path_in(row: str) -> str:
    """The path that the table says to give for what one trains with."""
    (cell,) = re.findall(rf"^\| {row} \| `([^`]+)`", TABLE, re.MULTILINE)
    return cell


def test_each_has_a_row() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", TABLE, re.MULTILINE)[1:]
    assert rows == ["LightlyTrain", "Lightning", "Hugging Face Trainer", "a loop of your own", "Keras", "anything else"]


@pytest.mark.parametrize("case", ["exploding_lr_nan", "mlflow_filestore_nan", "sparse"])
def test_lightly_train_logs_it_by_itself(case: str) -> None:
    """Real runs of LightlyTrain, which needs packages that this environment does not have beside its torch."""
    report = gradtrend.analyze(LIGHTLY / case)
    assert "`gradient_norm`" in TABLE
    assert "gradient_norm" in {one.metric for one in report.series if one.role == "grad_norm"}


def test_lightning(tmp_path: Path) -> None:
    needs("lightning")
    (snippet,) = (one for one in blocks("python", TABLE) if "lightning" in one)
    program = snippet.replace("Trainer(", 'Trainer(max_epochs=1, accelerator="cpu", gradient_clip_val=0.5, ')
    train(tmp_path, f"{MODEL}{LIGHTNING}{program}trainer.fit(Model(), batches)\n")
    check_judged(tmp_path / path_in("Lightning"), "grad_2.0_norm_total", clip=0.5)


def test_trainer(tmp_path: Path) -> None:
    needs("transformers", "accelerate")
    (snippet,) = re.findall(r"`(TrainingArguments\(.*?\))`", TABLE)
    program = snippet.replace(")", ", max_grad_norm=0.05, learning_rate=1e-2, num_train_epochs=2)")
    train(tmp_path, f"{TRAINER}Trainer(GPT2LMHeadModel(config), {program}, train_dataset=data).train()\n")
    check_judged(tmp_path / path_in("Hugging Face Trainer"), "grad_norm", clip=0.05)


def test_a_loop(tmp_path: Path) -> None:
    needs("torch")
    (snippet,) = (one for one in blocks("python", TABLE) if "clip_grad_norm_" in one)
    more = """
import json
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
batches = zip(inputs.split(8), labels.split(8))
loss_function = torch.nn.functional.mse_loss
"""
    train(tmp_path, f"{MODEL}{more}{snippet.replace('1.0)', '0.5)')}")
    check_judged(tmp_path / "metrics.jsonl", "grad_norm", clip=0.5)


def test_keras(tmp_path: Path) -> None:
    needs("keras")
    definitions, call = blocks("python", page("keras"))
    data = """
import numpy as np
keras.utils.set_random_seed(0)
inputs = np.random.normal(size=(320, 4)).astype("float32")
labels = inputs @ np.array([[1.0], [-2.0], [3.0], [0.5]], "float32")
model = keras.Sequential([keras.layers.Dense(8, "relu"), keras.layers.Dense(1)])
"""
    call = call.replace("0.001, clipnorm=1.0", "0.01, clipnorm=0.5").replace("labels, ", "labels, epochs=4, ")
    train(tmp_path, f"{definitions}{data}{call}")
    check_judged(tmp_path / "metrics.jsonl", "grad_norm", clip=0.5)
