"""Names and numbers of single console lines, and text that only looks like them."""

from __future__ import annotations

import math

import pytest

from gradtrend.ingest.formats.console.lines.grammar import tokens, value_of
from gradtrend.ingest.formats.console.lines.line import LineReader
from gradtrend.ingest.reading.counters import UNKNOWN


def named(line: str) -> dict[str, float | None]:
    return {token.name: value_of(token.text, token.unit) for token in tokens(line) if token.name}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("loss: 1.5", {"loss": 1.5}),
        ("loss=1.5, lr = 3e-4", {"loss": 1.5, "lr": 3e-4}),
        ("{'loss': '1.295', 'grad_norm': nan}", {"loss": 1.295, "grad_norm": math.nan}),
        ('{"train_loss": "816.9", "train_gnorm": "1000.72"}', {"train_loss": 816.9, "train_gnorm": 1000.72}),
        ("| lm loss: 1.203115E+01 | grad norm: 16.999 |", {"lm loss": 12.03115, "grad norm": 16.999}),
        ("Loss 0.5 (0.7)\tGrad Norm 8.4 (inf)", {"Loss": 0.5, "Grad Norm": 8.4}),
        ("loss 10.9 (+nanz)| norm -nan (+1.2z)| lr 1e-4", {"loss": 10.9, "norm": math.nan, "lr": 1e-4}),
        ("grad_norm: tensor(1.25, device='cuda:0')", {"grad_norm": 1.25, "device='cuda": 0.0}),
        ("actor/grad_norm:np.float64(0.27) - x:1", {"actor/grad_norm": 0.27, "x": 1.0}),
        ("|    grad_norm       | 0.12    |", {"grad_norm": 0.12}),
        ("grad/param norm = 5.6e-02, time/batch = 0.16s", {"grad/param norm": 0.056, "time/batch": 0.16}),
        ("elapsed time per iteration (ms): 86545.2", {"elapsed time per iteration": 86545.2}),
        ("loss: 1.#INF norm: -1.#IND x: -Infinity", {"loss": math.inf, "norm": math.nan, "x": -math.inf}),
        ("gnorm: 1.2K  tps: 7,282  loss: 12,345.5", {"gnorm": 1200.0, "tps": 7282.0, "loss": 12345.5}),
        ("{'grad_norm': {'enc': 0.1, 'dec': 0.2}, 'lr': 1}", {"grad_norm/enc": 0.1, "grad_norm/dec": 0.2, "lr": 1.0}),
        ("INFO:tensorflow:loss = 2.5, step = 100 (12.345 sec)", {"loss": 2.5}),
        ("📉 Step 100 → loss=2.5", {"loss": 2.5}),
        ("[D loss: 0.69] [G loss: 0.70] [D grad norm: 1.2]", {"D loss": 0.69, "G loss": 0.7, "D grad norm": 1.2}),
        ("  encoder.0.weight: grad_norm=0.5", {"encoder.0.weight: grad_norm": 0.5}),
        ("loss: nanxxx, CTCLoss: nanxxx", {"loss": math.nan, "CTCLoss": math.nan}),
        ("grad_norm: NaNBatch size: 8", {"grad_norm": math.nan, "Batch size": 8.0}),
        ("loss: nanmean, x: nan_to_num, y: nans, mode: info, z: infxxx, loss: NanLossDuringTraining", {}),
        ("loss -> 3.5; grad norm => 2", {"loss": 3.5, "grad norm": 2.0}),
    ],
)
def test_names_and_numbers(line: str, expected: dict[str, float]) -> None:
    got = named(line)
    for name, value in expected.items():
        read = got.get(name)
        if name.startswith("device"):
            continue
        assert read is not None
        assert read == value or (math.isnan(value) and math.isnan(read))


@pytest.mark.parametrize(
    "line",
    [
        "we clip grad norm to 1.0 and loss 3",
        "We saw that the loss is nan after 300 steps.",
        "Loss is nan, stopping training",
        "Note that the gradient norm: 1.0 is what the paper uses and we use it",
        "Namespace(lr=0.003, clip_grad_norm=1.0, max_grad_norm=1.0, loss='ce')",
        '    "gradient_clip_val": 0.0,',
        "rms_norm_eps: 1e-05, layer_norm_eps=1e-6",
        "With grad norm 2 and loss 3 it diverges.",
        "torch==2.13.0 normalizers==1.2.3 lossless==4",
        "Number of gradient accumulation steps = 4",
        "commit 1a2b3c4 fix loss #1234",
        "number of nan iterations in loss",
        "{'train_runtime': 12.3, 'train_loss': 2.5, 'epoch': 1.0}",
    ],
)
def test_text_that_logs_nothing(line: str) -> None:
    assert LineReader().read(line.encode()) is None


@pytest.mark.parametrize(
    ("line", "epoch", "counter", "total", "rank"),
    [
        ("iter 94: loss nan, grad_norm nan", UNKNOWN, 94, UNKNOWN, UNKNOWN),
        ("step   59/60 | loss 2.0 | norm 3.0", UNKNOWN, 59, 60, UNKNOWN),
        ("Train: [14/300][770/1251]\teta 0:05:08 lr 0.1\tloss 6.2 (6.3)", 14, 770, 1251, UNKNOWN),
        ("Train: 14 [ 770/1251 ( 62%)]  Loss: 3.2 (3.5)", 14, 770, 1251, UNKNOWN),
        ("Epoch: [24]  [1230/1251]  eta: 0:00:06  loss: 0.6 (0.6)", 24, 1230, 1251, UNKNOWN),
        ("2022-12-05 16:28:38,593 - mmdet - INFO - Epoch [12][700/3953]\tlr: 1, loss: 4.3", 12, 700, 3953, UNKNOWN),
        ("2024/05/07 11:45:16 - mmengine - INFO - Iter(train) [ 510/2046]  loss: 0.6", UNKNOWN, 510, 2046, UNKNOWN),
        ("| epoch 001:   1660 / 11138 loss=9.4, num_updates=1661, gnorm=2.6", 1, 1661, UNKNOWN, UNKNOWN),
        ("692/9500 (epoch 3.642), train_loss = 1.7", UNKNOWN, 692, 9500, UNKNOWN),
        ("[   7] loss: 5.0  gnorm: 1.1", UNKNOWN, 7, UNKNOWN, UNKNOWN),
        ("Epoch 1/3:  57%|███▋  | 5750/10000 [18:09<12:43, 5.57it/s, loss=0.4]", 1, 5750, 10000, UNKNOWN),
        ("12it [00:10, 1.2it/s, loss=0.5]", UNKNOWN, 12, UNKNOWN, UNKNOWN),
        ("[rank3]: step 5 loss 2.0", UNKNOWN, 5, UNKNOWN, 3),
        ("2: step 5 loss 2.0", UNKNOWN, 5, UNKNOWN, 2),
        ("[default7]: iteration 31214/ 115311 | lm loss: 2.1", UNKNOWN, 31214, 115311, 7),
        ("[1,4]<stdout>: step 5 loss 2.0", UNKNOWN, 5, UNKNOWN, 4),
        ("rank: 1 step: 9 loss: 2.0", UNKNOWN, 9, UNKNOWN, 1),
        ("Train Summary | Epoch 25 | loss=0.09", 25, UNKNOWN, UNKNOWN, UNKNOWN),
        ("  1%| | 10/1233 [07:54<14:12:16, 41.8s/it]{'loss': 1.7, 'epoch': 0.01}", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
        ("x.py:48] [100] learning_rate=0.001, loss=2.3", UNKNOWN, 100, UNKNOWN, UNKNOWN),
        ("(trainer:7) INFO: 2epoch:train:1-100batch: loss=9.5, grad_norm=1.5", 2, 100, UNKNOWN, UNKNOWN),
        ("Epoch 0: 1%| | 10/99 [00:10<10:00, loss=9.1, global_step=9.000]", 0, 9, UNKNOWN, UNKNOWN),
        ("{'loss': 2.3, 'global_step/max_steps': '10/1000', 'epoch': 0.1}", UNKNOWN, 10, 1000, UNKNOWN),
        ("Epoch [1/90], Step [100/500], Loss: 2.3", 1, 100, 500, UNKNOWN),
        ("step 1,200 | loss 3.2", UNKNOWN, 1200, UNKNOWN, UNKNOWN),
    ],
)
def test_where_a_line_stands(line: str, epoch: int, counter: int, total: int, rank: int) -> None:
    logged = LineReader().read(line.encode())
    assert logged is not None
    assert (logged.epoch, logged.counter, logged.total, logged.rank) == (epoch, counter, total, rank)


def test_lines_of_one_shape_but_other_names_are_not_confused() -> None:
    reader = LineReader()
    names = []
    for layer in (1, 2, 3):
        logged = reader.read(f"step {layer} loss: 1.0 d{layer}.grad_norm: 2.0".encode())
        assert logged is not None
        names.append(logged.plan.fields[-1].name)
    assert names == ["d1.grad_norm", "d2.grad_norm", "d3.grad_norm"]


def test_colours_and_quotes_are_no_part_of_the_text() -> None:
    line = b'"\x1b[32mstep: 3\x1b[0m  \x1b[1mloss: 2.5\x1b[39m"'
    logged = LineReader().read(line)
    assert logged is not None
    assert (logged.counter, logged.text) == (3, "step: 3  loss: 2.5")
