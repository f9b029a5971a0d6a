"""Logs as people paste them: each grammar gives its series, with the steps that it names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import pytest

from gradtrend.ingest.formats.console import reader as console
from gradtrend.ingest.reading import ReadOptions
from gradtrend.ingest.reading.names import SKIPPED_NORM
from tests.ingest.formats.console.test_reader import points, read_text

NAN = math.nan


def series(text: str, metric: str) -> tuple[list[int | None], list[str]]:
    """The steps and the values, as printed, of one metric."""
    found = points(read_text(text), metric)
    return [step for step, _ in found], [value for _, value in found]


def lines(form: str, rows: Iterable[tuple[object, ...]]) -> str:
    return "".join(form.format(*row) + "\n" for row in rows)


GRAMMARS = [
    (
        "dict of groups",
        "record -- step={} loss=3.5 loss_scale=4096.0 grad_norm={{'0_default': {}, '1_fp32': 0.0}} micro_num=8",
        "grad_norm/0_default",
    ),
    ("a call", "[Update {}/90] PolicyLoss=0.7 Adv(mean=0.0, std=1.0) GradNorm(P={}, V=80.1) Reward=1", "GradNorm/P"),
    ("brackets", "Epoch 2, batch {}, loss[loss={}, simple_loss=0.6, over 17 frames. ], lr: 1e-3", "loss"),
    ("averages in brackets", "batch {}, loss[loss=9.9, over 1 frames. ], tot_loss[loss={}, over 2 frames]", "tot_loss"),
    ("in bars", "Epoch: 4, Batch: {}/9000, LR: 0.5, PPL: 4.3, |Param|: 871.1, |GParam|: {}, tokens/sec", "GParam"),
    ("a heading", "Epoch: 1, global_step: {} | loss: total: {}, xy: 3.4, wh: 5.7 | rec: 0.1 | lr: 3e-05", "loss/total"),
    ("Marian", "[2026-10-18 18:10:31] Ep. 7 : Up. {} : Sen. 5,630,845 : Cost {} : Time 6.9s : 1359.7 words/s", "Cost"),
    ("Paddle", "I0906 23:29:51.5 436 TrainerInternal.cpp:165] Batch={} samples=9 AvgCost=1 CurrentCost={} Eval: e=0.8",
     "CurrentCost"),
    ("WeSep", "[ INFO : 2026-01-13 01:10:25,280 ] - |     TRAIN|        14| {:>9}| {:>9}|0.00072586|", "loss"),
    ("YOLACT", "[  1] {:>7} || B: 5.4 | C: 3.6 | M: 6.9 | T: {} || ETA: 1 day, 23:50:39 || timer: 0.298", "loss"),
    ("Tacotron", "Train loss {} {} Grad Norm 1.25 0.81s/it", "Train loss"),
    ("a level before the step", "INFO:tensorflow:Step {} per-step time 0.802s loss={}", "loss"),
    ("FunASR", "[x][INFO] - train, rank: 0, epoch: 0/50, step_in_epoch: {}, total step: 3, (loss_avg_rank: {})",
     "loss_avg_rank"),
    ("OpenNMT", "[2026-11-26 06:00:00,3 INFO] Step {}/60000; acc: 2.5; ppl: 907.4; xent: {}; lr: 0.1; 137 s", "xent"),
    ("LeRobot", "INFO ts/train.py:232 step:{} smpl:80 ep:2 epch:0.10 loss:2.5 grdn:{} lr:1.0e-05 updt_s:0.098", "grdn"),
    ("ESPnet", "[gpu4:0/4] (trainer:721) INFO: 1epoch:train:1-{}batch: iter_time=0.4, loss={}, optim0_lr0=0.1", "loss"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "metric"), [case[1:] for case in GRAMMARS], ids=[case[0] for case in GRAMMARS])
def test_a_grammar_is_read(form: str, metric: str) -> None:
    rows = [(50, 3.25), (100, 2.75), (150, 41.5), (200, "nan")]
    assert series(lines(form, rows), metric) == ([50, 100, 150, 200], ["3.25", "2.75", "41.5", "nan"])


def test_icefall_prints_the_norm_as_quartiles_ahead_of_the_batch() -> None:
    form = (
        "WARNING [optim.py:600] Clipping_scale=2.0, grad-norm quartiles 1.0e-03 2.0e-03 {1} 4.0e-03 8.0e-03,"
        " threshold=1e-02, percent-clipped=0.0\n"
        "INFO [train.py:731] Epoch 3, batch {0}, loss[loss=0.5, over 1.00 frames. ], cur_lr: 1.00e-04"
    )
    assert series(lines(form, [(50, 0.003), (100, 0.25), (150, 7.0)]), "grad-norm") == (
        [50, 100, 150], ["0.003", "0.25", "7.0"],
    )  # fmt: skip


def test_epoch_and_batch_with_a_slash_are_no_step_of_a_total() -> None:
    text = lines("DEBUG TRAIN Batch {}/{} loss {} lr 0.1 rank 0", [(3, 700, 1.5), (3, 800, 1.4), (3, 900, "inf")])
    assert series(text, "loss") == ([700, 800, 900], ["1.5", "1.4", "inf"])


def test_a_step_of_a_total_stays_one() -> None:
    text = lines("step {}/{} loss {}", [(700, 900, 1.5), (800, 900, 1.4), (900, 900, 1.3)])
    assert series(text, "loss")[0] == [700, 800, 900]


def test_two_numbers_ahead_are_epoch_and_step() -> None:
    rows = [(epoch, step, epoch + step / 10) for epoch in (4, 5) for step in (1, 2, 3)]
    assert series(lines("{} {} Loss={} Time=0.04", rows), "Loss")[0] == [10, 11, 12, 13, 14, 15]


def test_a_second_number_that_never_changes_is_no_step() -> None:
    assert series(lines("{} {} Loss={}", [(i, 64, i / 10) for i in range(1, 5)]), "Loss")[0] == [1, 2, 3, 4]


def test_steps_in_thousands_go_on_at_their_distance() -> None:
    short = ["600", "800", "1K", "1K", "1K", "2K", "2K", "2K", "2K", "2K", "3K"]
    text = lines("step:{} loss:{} grdn:1.5", [(step, i) for i, step in enumerate(short)])
    assert series(text, "loss")[0] == [600, 800, 1000, 1200, 1400, 1600, 1800, 2000, 2200, 2400, 2600]


def test_steps_in_thousands_alone_fill_them() -> None:
    text = lines("step:{} loss:{}", [("7K", 3), ("7K", 2), ("8K", 1), ("8K", 1), ("9K", 1)])
    assert series(text, "loss")[0] == [7000, 7500, 8000, 8500, 9000]


def test_a_jump_of_steps_in_thousands_begins_anew() -> None:
    text = lines("step:{} loss:{}", [("200", 3), ("400", 2), ("600", 1), ("5K", 1), ("5K", 1)])
    assert series(text, "loss")[0] == [200, 400, 600, 5000, 5200]


@pytest.mark.parametrize("bar_first", [True, False])
def test_a_bar_beside_a_dict_is_its_step(bar_first: bool) -> None:
    def row(step: int) -> str:
        bar = f" 7%|▍  | {step}/900 [01:22<4:08:53, 22.46s/it]"
        logged = f"{{'loss': {step / 8}, 'grad_norm': 1.5, 'epoch': {step / 300}}}"
        return f"{bar}\n      \n{logged}\n" if bar_first else f"{logged}\n\r{bar}\n"

    steps = list(range(20, 400, 20))
    assert series("".join(map(row, steps)), "loss")[0] == steps


def test_bars_that_do_not_go_on_give_no_step() -> None:
    rows = [
        f" 7%|▍  | {step}/900 [01:22<4:08]\n{{'loss': 1.5, 'grad_norm': {i}}}\n" for i, step in enumerate((9, 9, 30))
    ]
    assert series("".join(rows), "grad_norm")[0] == [None, None, None]


def test_the_bar_of_an_evaluation_gives_no_step() -> None:
    row = "100%|███| {0}/900 [01:22<4:08]\n100%|███| 13/13 [00:02<00:00]\n{{'loss': 1.5, 'grad_norm': {0}}}\n"
    assert series("".join(row.format(step) for step in (10, 20, 30, 40)), "grad_norm")[0] == [None] * 4


@pytest.mark.parametrize(
    ("form", "first"),
    [
        ("100%|██████████| 50/50 [00:04<00:00, 11.3it/s, epoch={}/100, avg_loss={}]", 1),
        ("Epoch {}: 100%|███| 50/50 [00:01<00:00, loss={}, v_num=1]", 0),
        ("==> Start Training Epoch {}, lr=0.01\nloss={} (0.0157), lr=0.01: : 100% 50/50 [00:12<00:00,  1.37it/s]", 1),
        ("Train Epoch: {} Loss: {}: 100% 50/50 [00:12<00:00,  1.37it/s]", 1),
    ],
)
@pytest.mark.parametrize("values", [(3.5, 2.5, 1.5), ("nan",) * 3])
def test_finished_bars_are_one_point_an_epoch(form: str, first: int, values: tuple[object, ...]) -> None:
    reading = read_text(lines(form, enumerate(values, first)))
    (name,) = (name for name in reading.series if "loss" in name.lower())
    assert points(reading, name) == [(50 * (i + 1), str(value)) for i, value in enumerate(values)]


def test_a_bar_drawn_again_at_its_end_is_one_point() -> None:
    bars = "Epoch {0}: 0%| | 0/50 [00:00, loss=9.5]\nEpoch {0}: 100%|█| 50/50 [00:01, loss=8.5]\n"
    text = bars + "Epoch {0}: 100%|█| 50/50 [00:01, loss={1}]"
    assert series(lines(text, [(0, 3.5), (1, 2.5)]), "loss") == ([0, 50, 100], ["9.5", "9.5", "2.5"])
    ends = "Epoch 7: 100%|█| 50/50 [00:01, loss={}]"
    assert series(lines(ends, [(3.5,), (2.5,), (1.5,)]), "loss") == ([50], ["1.5"])


def test_finished_bars_of_a_step_of_a_total_stay_there() -> None:
    rows = [(1, 40, 3.5), (2, 90, 2.5), (3, 100, 1.5), (4, 100, 0.5)]
    text = lines("Epoch {0}: {1}%|█| {1}/100 [00:01, loss={2}]", rows)
    assert series(text, "loss")[0] == [40, 90, 100]


@pytest.mark.parametrize("word", ["iter", "iterations", "step"])
def test_numbers_ahead_of_their_words_are_epoch_and_step(word: str) -> None:
    form = f"{{:03d}} epoch, {{:05d}} {word}, average time 0.66, loss {{}}"
    assert series(lines(form, [(0, 3000, 1.5), (0, 6000, "nan"), (0, 9000, "nan")]), "loss") == (
        [3000, 6000, 9000], ["1.5", "nan", "nan"],
    )  # fmt: skip
    rows = [(epoch, step, 1.5) for epoch in (0, 1) for step in (0, 50, 99)]
    assert series(lines(form, rows), "loss")[0] == [0, 50, 99, 100, 150, 199]


def test_a_word_that_names_the_number_behind_it_is_not_of_the_one_before() -> None:
    text = lines("took 3 epoch, 60 iter: {} loss {}", [(7, 2.5), (8, 1.5), (9, 0.5)])
    assert series(text, "loss")[0] == [7, 8, 9]


def test_names_joined_to_their_numbers() -> None:
    text = lines("step_{}:\tloss_{}", [(78600, -4.32), (78620, 4191.68), (78640, "nan")])
    assert series(text, "loss") == ([78600, 78620, 78640], ["-4.32", "4191.68", "nan"])


@pytest.mark.parametrize("name", ["loss_1:", "loss_1", "grad_norm_0", "loss_0/a:"])
def test_a_name_that_ends_in_a_number_stays_one(name: str) -> None:
    reading = read_text(lines(f"step_{{0}}: {name} {{1}}", [(10, 2.5), (20, 1.5)]))
    (metric,) = reading.series
    assert metric == name.rstrip(":")
    assert [value for _, value in points(reading, metric)] == ["2.5", "1.5"]


def test_rows_over_two_lines_share_the_step() -> None:
    form = "iteration: {0} grad_norm: {1}\nloss_a:0.1  loss_b:{1}"
    assert series(lines(form, [(100, 4.5), (105, 5.5), (110, 6.5)]), "loss_b") == (
        [100, 105, 110], ["4.5", "5.5", "6.5"],
    )  # fmt: skip


def test_what_is_printed_twice_counts_once() -> None:
    form = (
        "solver.cpp:239] Iteration {0} (1.4 iter/s, 71.0s/100 iters), loss = {1}\n"
        "solver.cpp:258]     Train net output #0: loss = {1} (* 1 = {1} loss)\n"
        "solver.cpp:414]     Test net output #0: loss = 99.5 (* 1 = 99.5 loss)\n"
        "sgd_solver.cpp:112] Iteration {0}, lr = 1e-05"
    )
    reading = read_text(lines(form, [(0, 58.5), (100, 57.5), (200, "nan"), (300, "nan")]))
    assert points(reading, "loss") == [(0, "58.5"), (100, "57.5"), (200, "nan"), (300, "nan")]
    assert reading.skipped == ()


@pytest.mark.parametrize(
    "between",
    [
        "Averaged stats: lr: 0.1  loss: 1.75 (1.9)  grad_norm: 2.5 (3.5)",
        "loss_dict = {'loss': tensor(nan), 'grad_norm': tensor(2.5)}",
        "Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances",
        "all       1049       1164      0.764      0.776      0.739      0.526",
        "best loss 1.5 so far",
    ],
)
def test_whole_lines_between_the_rows_are_no_damage(between: str) -> None:
    rows = [f"step {i} | loss 2.5 | grad_norm {i}.5 | lr 0.1" for i in range(6)]
    reading = read_text("\n".join([*rows[:3], between, *rows[3:]]) + "\n")
    assert [step for step, _ in points(reading, "grad_norm")] == [0, 1, 2, 3, 4, 5]
    assert reading.skipped == ()


def test_a_line_without_its_head_is_damage() -> None:
    rows = [f"step {i} | loss 2.5 | grad_norm {i}.5" for i in range(6)]
    reading = read_text("\n".join([*rows[:3], "| loss 9.5 | grad_norm 7.5", *rows[3:]]) + "\n")
    assert [piece.line for piece in reading.skipped] == [4]
    assert len(points(reading, "grad_norm")) == 6


@pytest.mark.parametrize(
    ("last", "kept"),
    [
        ("step 4 loss 2.5000 grad_norm 1.1234", "1.1234"),  # a log that ends without a line end, but whole
        ("step 4 loss 2.5000 grad_norm 1.12", None),
        ("step 4 loss 2.5000 grad_norm 1", None),
        ("step 4 loss 2.50", None),
    ],
)
def test_a_number_that_the_end_of_the_log_cuts_is_not_believed(last: str, kept: str | None) -> None:
    rows = [f"step {i} loss 2.5000 grad_norm 1.000{i + 1}" for i in range(4)]
    reading = read_text("\n".join([*rows, last]))
    values = [value for _, value in points(reading, "grad_norm")]
    assert values == ["1.0001", "1.0002", "1.0003", "1.0004", *([kept] if kept else [])]
    assert [piece.reason for piece in reading.skipped] == ([] if kept else ["cut inside its last number"])


def test_a_dict_that_is_cut_in_its_number() -> None:
    rows = [f"{{'loss': 2.{i}, 'grad_norm': 1.{i}23, 'learning_rate': 1e-05}}" for i in range(5)]
    reading = read_text("\n".join(rows) + "\n{'loss': 2.9, 'grad_norm': 11")
    assert [value for _, value in points(reading, "loss")][-1] == "2.9"
    assert len(points(reading, "grad_norm")) == 5


def test_a_decimal_comma() -> None:
    text = lines("Step {}: loss = {}; grad_norm = {}; lr = 0,001", [(0, "2,000", "1,100"), (10, "1,900", "495,396")])
    assert series(text, "grad_norm")[1] == ["1.1", "495.396"]
    assert series(text, "lr")[1] == ["0.001", "0.001"]


def test_thousands_stay_thousands() -> None:
    text = lines("step {} loss {} norm {}", [("1,000", "2.5", "1,234"), ("2,000", "2.25", "12,345")])
    assert series(text, "norm") == ([1000, 2000], ["1234.0", "12345.0"])


def test_a_skipped_update_is_a_norm_that_is_not_finite() -> None:
    form = (
        "[gpu4:0/4] (trainer:663) WARNING: The grad norm is nan. Skipping updating the model.\n"
        "[gpu4:0/4] (trainer:663) WARNING: The grad norm is inf. Skipping updating the model.\n"
        "[gpu4:0/4] (trainer:721) INFO: 1epoch:train:1-{}batch: loss={}, optim0_lr0=0.1"
    )
    reading = read_text(lines(form, [(50, 3.5), (100, 3.25), (150, 3.0)]))
    assert [value for _, value in points(reading, SKIPPED_NORM)] == ["nan", "inf"] * 3
    assert [step for step, _ in points(reading, SKIPPED_NORM)] == [25, 50, 75, 100, 125, 150]
    (note,) = reading.notes[:1]
    assert note.kind == "skipped-updates"
    assert dict(note.measures) == {"skipped_updates": 6.0, "skipped_share": pytest.approx(0.04)}


@pytest.mark.parametrize(
    ("form", "scales"),
    [
        ("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {}", ["64.0", "32.0", "16.0"]),
        ("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4096, reducing to {}", ["64", "32", "16"]),
        ("NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: {}", ["64.0", "32.0", "16.0"]),
    ],
)
def test_an_overflow_gives_the_loss_scale(form: str, scales: list[str]) -> None:
    text = "".join(f"step {i} loss 1.5\n{form.format(scale)}\n" for i, scale in enumerate(scales))
    steps, values = series(text, "loss scale")
    assert steps == [0, 1, 2]
    assert [float(value) for value in values] == [64, 32, 16]


def test_the_scale_of_a_skipped_update_without_the_next_one() -> None:
    form = "step {} loss 1.5\nOVERFLOW! Skipping step. Attempted loss scale: {}"
    reading = read_text(lines(form, [(1, "8388608.0"), (2, "4194304.0"), (3, "2097152")]))
    assert points(reading, "loss scale") == [(1, "8388608.0"), (2, "4194304.0"), (3, "2097152.0")]
    assert dict(reading.notes[0].measures)["skipped_updates"] == 3
    assert read_text("step 1 loss 1.5\nAttempted loss scale: 64.0 at the start\n").notes[:-1] == ()


def test_hysteresis_is_no_loss_scale() -> None:
    text = "step 0 loss 1\nOVERFLOW! Skipping step. Loss scale: 64, but hysteresis is 2. Reducing hysteresis to 1\n"
    assert series(text, "loss scale") == ([], [])
    assert dict(read_text(text).notes[0].measures)["skipped_updates"] == 1


def test_each_rank_warns_once() -> None:
    text = "step 0 loss 1.5\n" + "".join(f"[rank{r}]: Gradient overflow. Skipping step\n" for r in (1, 0, 2) * 4)
    assert dict(read_text(text).notes[0].measures)["skipped_updates"] == 4


def test_a_loss_that_the_trainer_sets_to_zero_is_none() -> None:
    row = "Epoch: [2][{}/40]  Loss {} (10.9521)"
    text = "\n".join([
        row.format(1, "3.5000"), "WARNING: received a nan loss, setting loss value to 0", row.format(2, "0.0000"),
        row.format(3, "0.0000"),
    ])  # fmt: skip
    reading = read_text(text)
    assert [value for _, value in points(reading, "Loss")] == ["3.5", "nan", "0.0"]
    assert "loss-zeroed" in [note.kind for note in reading.notes]


@pytest.mark.parametrize(
    "line",
    [
        "skipping 3 samples without a gradient norm",
        "We skip steps whose gradient norm is large, as in the paper",
        "the loss scale is set to 65536 at the start",
        "overflow of the grad buffer is impossible here",
        "WARNING: nan_to_num is applied to the loss, set eps to 0.1",
    ],
)
def test_talk_of_skipping_is_no_warning(line: str) -> None:
    reading = read_text(f"step 1 loss 1.5 grad_norm 2.5\n{line}\n")
    assert reading.notes == ()
    assert set(reading.series) == {"loss", "grad_norm"}


def test_a_log_of_held_out_losses_alone_is_read_as_such() -> None:
    text = lines("[{}/5000] valid loss: {} accuracy: 47.0", [(60, 1.5), (62, 1.25), (64, "nan")])
    assert series(text, "valid loss") == ([60, 62, 64], ["1.5", "1.25", "nan"])


def test_beside_a_training_loss_held_out_lines_are_left_out() -> None:
    text = lines(
        "step {0} loss {1}\n[CV] step {0} loss 9.5\nValid Summary | Epoch 3 | Loss=0.15", [(1, 1.5), (2, 1.25)]
    )
    assert list(read_text(text).series) == ["loss"]


def test_a_text_without_a_norm_says_what_it_has() -> None:
    notes = read_text(lines("step {} | ppl: {} | acc: 0.5", [(1, 30.5), (2, 29.5)]) + "done\n").notes
    assert [note.kind for note in notes] == ["no-norm-found"]
    assert notes[0].message.endswith("3 lines, 2 with numbers; names: step, ppl, acc")


def test_a_metric_that_the_user_names_is_read_on_its_own_lines(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(lines("iter {} | G: {} | other: 3.0", [(10, 1.5), (20, 2.5)]) + "a word on G\n")
    (reading,) = console.read(log, ReadOptions(names=("G",)))
    assert points(reading, "G") == [(10, "1.5"), (20, "2.5")]
    assert console.read(log, ReadOptions())[0].series == {}
