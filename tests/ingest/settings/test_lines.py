"""What the lines of a log say: the framework that wrote it, and what it mentions."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gradtrend.ingest.settings.frameworks import framework_of_metrics, most_particular
from gradtrend.ingest.settings.lines import _WORDS, PART_BYTES, said_by, said_in
from gradtrend.model.runlog import SIGNS
from tests.detect.runs import read

LINES = {
    "detectron2": "[03/04 11:22:33 d2.utils.events]:  eta: 1:02:03  iter: 19  total_loss: 2.1  lr: 0.0002",
    "mmdet": "2026-01-02 03:04:05,678 - mmdet - INFO - Epoch [1][50/7330]\tlr: 1.978e-03, loss: 1.2",
    "transformers": "{'loss': 1.5, 'grad_norm': 0.7, 'learning_rate': 2e-05, 'epoch': 0.1}",
    "trl": "{'loss': 0.6, 'grad_norm': 2.0, 'learning_rate': 1e-06, 'rewards/chosen': 0.1, 'epoch': 0.1}",
    "llama-factory": "[INFO|2026-01-02 03:04:05] llamafactory.train.callbacks:157 >> {'loss': 1.5}",
    "fairseq": "| epoch 001 | loss 9.4 | ppl 700 | num_updates 412 | lr 0.0001 | gnorm 0.5 | clip 0%",
    "espnet": "[gpu1] 2026-01-02 (trainer:721) INFO: 1epoch:train:1-50batch: iter_time=0.4, loss=93.1",
    "wenet": "2026-01-02 03:04:05,678 DEBUG TRAIN Batch 0/100 loss 90.1 loss_att 80.0 lr 0.00001 rank 0",
    "icefall": "INFO [train.py:908] Epoch 1, batch 50, loss[loss=0.4], tot_loss[loss=0.5], batch size: 9",
    "funasr": "train, rank: 0, epoch: 0/60, step: 2/71, (loss_avg_rank: 26.7), (lr: 2e-07)",
    "caffe": "I0102 03:04:05.678 41 solver.cpp:239] Iteration 100 (1.4 iter/s), loss = 5.4",
    "keras": "  20/1000 [..............] - ETA: 1:02 - loss: 3.4458",
    "opennmt": "[2026-01-02 03:04:05,678 INFO] Step 50/60000; acc: 1.0; ppl: 907.4; xent: 6.8; 1373/2012 tok/s; 9 sec",
    "marian": "[2026-01-02 03:04:05] Ep. 1 : Up. 500 : Sen. 90,112 : Cost 7.9 : Time 100.2s : gNorm 1.2",
    "megatron": " iteration 100/ 5000 | consumed samples: 25600 | learning rate: 1.0E-4 | lm loss: 5.1E+00 |",
    "nanogpt": "iter 100: loss 4.5432, time 102.5ms, mfu 12.34%",
    "coqui": "   --> STEP: 25/472 -- GLOBAL_STEP: 25\n     | > loss: 3.68",
    "timm": "Train: 0 [  50/1251 (  4%)]  Loss: 6.94 (6.95)  Time: 0.2s",
    "paddle-v1": "I0102 TrainerInternal.cpp:165] Batch=200 samples=25600 AvgCost=65.5",
    "rsl-rl": "Learning iteration 84/400\n Mean value_function loss: 0.03",
    "lightning": "Epoch 0:  10%|█  | 10/100 [00:01<00:09, loss=2.3, v_num=0]",
    "yolact": "[  1]    1100 || B: 5.600 | C: 4.100 | M: 6.400 | S: 1.900 | T: 18.000 || ETA: 1 day",
    "tf1": "INFO:tensorflow:loss = 2.3, step = 100 (1.2 sec)",
    "tf-object-detection": "I0102 model_lib_v2.py:652] Step 100 per-step time 0.711s loss=1.310",
    "dinov2": "Training  [ 10/900]  eta: 1:00  total_loss: 8.0 (8.1)  koleo_loss: 0.1 (0.1)",
    None: "step 100 loss 2.3 grad_norm 1.2 lr 0.001",
}


@pytest.mark.parametrize(("framework", "line"), LINES.items(), ids=str)
def test_a_framework_is_known_by_its_lines(framework: str | None, line: str) -> None:
    assert said_in(line.encode()).framework == framework


@pytest.mark.parametrize(
    ("line", "sign"),
    [
        ("Namespace(fp16=True, lr=0.1)", "float16"),
        ("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 512.0", "float16"),
        ("Selected optimization level O1", "float16"),
        ("The grad norm is nan. Skipping updating the model.", "norm-not-finite"),
        ("Minimum loss scale reached (0.0001).", "scale-at-minimum"),
        ("reducing loss scale to 1.9073486328125e-06", "scale-at-minimum"),
        ("Try lowering the learning rate, using gradient clipping", "blames-the-rate"),
        ("UserWarning: cuDNN SDPA backward got grad_output.strides()", "attention-warning"),
        ("loss_ctc 26.6", "ctc"),
        ("FloatingPointError: Loss became infinite or NaN at iteration=583!", "stops-on-nonfinite"),
        ("Batch 8: Invalid loss, terminating training", "stops-on-nonfinite"),
        ("NanLossDuringTrainingError: NaN loss during training.", "stops-on-nonfinite"),
        ("RuntimeError: Magnitude of gradient is bad: -nan", "stops-on-nonfinite"),
        ("RuntimeError: Loss exploded to nan at step 51!", "stops-on-nonfinite"),
        ("Loss exploded at step 51", "stops-on-nonfinite"),
    ],
)
def test_a_sign_is_seen(line: str, sign: str) -> None:
    assert sign in said_in(line.encode()).signs
    assert sign in SIGNS


@pytest.mark.parametrize(
    "line",
    [
        "Namespace(fp16=False, amp=None, bf16: false)",
        "an example of a sample: damp, stamp, amplitude 3",
        "the scale of the loss is 3.2",
        "deduct, ductile, octco",
        "we skip this chapter",
        "loss 2.3 grad_norm 1.2",
        "RuntimeError: Loss exploded to 150.0 at step 51!",
    ],
)
def test_other_words_are_no_signs(line: str) -> None:
    assert not said_in(line.encode()).signs


def test_rows_of_nan_count_where_none_could_be_read() -> None:
    for line in (
        "PPL: nan, |GParam|: nan",
        "AvgCost=nan CurrentCost=nan",
        "|  TRAIN|  12|  700|    nan|0.0007|",
        "0 nan nan 0.99",
    ):
        assert "rows-of-nan" in said_in(line.encode(), unread=True).signs
        assert "rows-of-nan" not in said_in(line.encode()).signs
    assert not said_in(b"nanny 1.2, finance 3, loss: 2.3", unread=True).signs


def test_an_average_that_is_not_finite_is_noted_with_the_term_to_blame() -> None:
    (note,) = said_in(b"total_loss: 6.6 (inf)  koleo_loss: 0.1 (inf)  dino_loss: 4.1 (4.2)").notes
    assert (note.kind, note.details) == ("average-nonfinite", "koleo_loss")
    assert not said_in(b"total_loss: inf (inf)").notes
    assert not said_in(b"total_loss: 6.6 (6.7)").notes


def test_the_first_and_the_last_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    rows = "".join(f"step {i} loss 2.3\n" for i in range(5000))
    path.write_text("fp16 mixed precision\n" + rows + "Minimum loss scale reached\n")
    assert said_by(path).signs == {"float16", "scale-at-minimum"}
    assert len(rows) > 4 * PART_BYTES
    path.write_text(rows + "ctc\n" + rows)
    assert not said_by(path).signs


def test_a_compressed_log_is_known_by_its_first_lines(tmp_path: Path) -> None:
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(LINES["caffe"].encode()))
    assert said_by(path).framework == "caffe"


def test_what_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    assert said_by(tmp_path / "none.log") == said_by(tmp_path) == said_in(b"")


@pytest.mark.parametrize(
    ("names", "framework"),
    [
        (["actor/pg_loss", "actor/grad_norm"], "verl"),
        (["loss", "reward_std", "frac_reward_zero_std"], "trl"),
        (["loss", "completions/clipped_ratio"], "ms-swift"),
        (["train/loss", "train/grad_norm", "train/learning_rate", "train/epoch"], "transformers"),
        (["train/box_loss", "train/dfl_loss"], "ultralytics"),
        (["Loss/value_function", "Loss/surrogate"], "rsl-rl"),
        (["loss", "grad_norm", "lr"], None),
        ([], None),
    ],
)
def test_a_framework_is_known_by_its_metrics(names: list[str], framework: str | None) -> None:
    assert framework_of_metrics(names) == framework


def test_what_is_built_on_another_counts_before_it() -> None:
    assert most_particular(["transformers", None, "trl"]) == "trl"
    assert most_particular([None, "lightning"]) == "lightning"
    assert most_particular([None]) is None


def test_a_run_knows_its_framework_and_signs(tmp_path: Path) -> None:
    rows = "".join(f"{LINES['detectron2']}  fp16\n".replace("iter: 19", f"iter: {19 + 20 * i}") for i in range(9))
    (tmp_path / "train.log").write_text(rows)
    log = read(tmp_path)
    assert log.settings.framework == "detectron2"
    assert log.signs == {"float16"}


def test_every_sign_has_its_words() -> None:
    assert {*_WORDS, "rows-of-nan"} == SIGNS


def test_a_line_of_letters_costs_no_time_by_its_square() -> None:
    text = b"loss" * 4000 + b" 1.0 (inf) "  # at most what is ever read of a log
    assert said_in(text) == said_in(text)
    assert not said_in(text).notes


@pytest.mark.parametrize(
    ("line", "float16"),
    [
        ("iteration 9 | lm loss: 2.0 | loss scale: 1.0 | grad norm: 1.2", False),
        ("iteration 9 | lm loss: 2.0 | loss scale: 1024.0 | grad norm: 1.2", True),
        ("Mean amp_loss loss: 0.2", False), ("amp_opt_level: O1", True), ("amp: true", True),
    ],
)  # fmt: skip
def test_a_scale_of_one_and_other_things_called_amp_are_no_float16(line: str, float16: bool) -> None:
    assert ("float16" in said_in(line.encode()).signs) is float16


@pytest.mark.parametrize(
    "end", ["loss is nan, skipping this batch\n", "loss is nan\nstep 9 loss 2.0\n"], ids=["left out", "went on"]
)
def test_a_batch_that_is_left_out_is_no_end(end: str) -> None:
    assert not said_in(b"step 1 loss 2.3\n" * 300 + end.encode()).signs


def test_the_first_part_of_a_stream_has_no_end() -> None:
    text = b"step 1 loss 2.3\nNaN loss during training\n"
    assert said_in(text).signs
    assert not said_in(text, to_end=False).signs


def test_words_of_a_failure_count_at_the_end_alone() -> None:
    rows = b"step 1 loss 2.3\n" * 300
    assert not said_in(b"nan loss, batch left out\n" + rows).signs
    assert said_in(rows + b"NaN loss during training\n").signs == {"stops-on-nonfinite"}
