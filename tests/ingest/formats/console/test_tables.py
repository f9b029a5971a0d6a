"""Tables and blocks in console text."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest

from gradtrend.ingest.formats.console import reader as console
from tests.ingest.readings import long_table

TABLES = {
    "markdown": """talk about loss

| step | loss | grad_norm |
|-----:|-----:|:----------|
| 1    | 3.2  | 0.5       |
| 2    | 3.1  | nan       |
end
""",
    "tabs": "Step\tTraining Loss\tgrad_norm\n1\t3.2\t0.5\n2\t3.1\tnan\n",
    "spaces": """  step     loss   grad_norm
     1      3.2         0.5
     2      3.1         nan
""",
    "boxes": """┏━━━━━━┳━━━━━━┳━━━━━━━━━━━┓
┃ step ┃ loss ┃ grad_norm ┃
┡━━━━━━╇━━━━━━╇━━━━━━━━━━━┩
│ 1    │ 3.2  │ 0.5       │
│ 2    │ 3.1  │ nan       │
""",
    "commas": "step,loss,grad_norm\n1,3.2,0.5\n2,3.1,nan\n",
    "interrupted": "step | loss | grad_norm\n1 | 3.2 | 0.5\nsaving a checkpoint\n2 | 3.1 | nan\n",
}


def points(text: str, metric: str) -> list[tuple[int | None, str]]:
    (reading,) = console.read_stream(io.BufferedReader(io.BytesIO(text.encode())))
    rows = long_table(reading).filter(pl.col("metric") == metric)
    return [(step, repr(value)) for step, value in rows.select("step", "value").iter_rows()]


@pytest.mark.parametrize("name", TABLES)
def test_rows_below_a_header_are_read(name: str) -> None:
    assert points(TABLES[name], "grad_norm") == [(1, "0.5"), (2, "nan")]


def test_a_table_ends_where_other_text_begins() -> None:
    text = TABLES["markdown"] + "a\nb\nc\nd\n| 3 | 4 | 5 |\n"
    assert points(text, "grad_norm") == [(1, "0.5"), (2, "nan")]


def test_a_table_without_a_step_is_no_log() -> None:
    assert points("| model | loss |\n|--|--|\n| 1 | 0.5 |\n", "loss") == []


def test_a_block_of_rows_takes_the_step_at_its_head() -> None:
    block = "| time/ | |\n| total_timesteps | {0} |\n| train/ | |\n| loss | {1} |\n| grad_norm | {2} |\n---\n"
    assert points(block.format(2048, 1.5, 0.5) + block.format(4096, 1.4, "nan"), "grad_norm") == [
        (2048, "0.5"),
        (4096, "nan"),
    ]


def test_a_head_over_many_lines_is_not_their_step() -> None:
    text = "Epoch 3\n" + "".join(f"loss: {i}.5 grad_norm: {i}.25\n" for i in range(4))
    assert [step for step, _ in points(text, "grad_norm")] == [None] * 4


def test_layers_below_a_line_with_a_step_are_of_that_step() -> None:
    text = "".join(
        f"step {s} loss {s}.5\n  enc.0.weight: grad_norm={s}.25\n  enc.1.weight: grad_norm={s}.75\n" for s in (1, 2)
    )
    assert points(text, "enc.0.weight: grad_norm") == [(1, "1.25"), (2, "2.25")]
    assert points(text, "enc.1.weight: grad_norm") == [(1, "1.75"), (2, "2.75")]


def test_a_row_with_a_progress_bar_behind_it() -> None:
    text = "  Epoch  GPU_mem  box_loss  Size\n  1/100  2.34G  1.5  640: 100%|███| 8/8 [00:02<00:00,  3.1it/s]\n"
    assert points(text, "box_loss") == [(1, "1.5")]


@pytest.mark.parametrize("head", ["2026-01-01 INFO\t[step={}/1000]", "INFO [step={}/1000,epoch=0]", "[batch={}/1000]:"])
def test_indented_values_below_a_step_line(head: str) -> None:
    text = "".join(f"{head.format(s)}\n    train/loss={s}.5\n    optim/grad_norm={s}.25\n" for s in (100, 110))
    assert points(text, "optim/grad_norm") == [(100, "100.25"), (110, "110.25")]


def test_numpy_s_savetxt_marks_its_header() -> None:
    text = "# step loss grad_norm\n" + "".join(f"{i:.4e} {9 - i:.4e} {i + 0.5:.4e}\n" for i in range(5))
    assert points(text, "grad_norm") == [(i, repr(i + 0.5)) for i in range(5)]


@pytest.mark.parametrize("text", [*TABLES.values(), "step loss gnorm lr\n1 3.2 0.5 0.1\n2 3.1 nan 0.1\n"])
def test_a_text_with_a_table_is_a_log(text: str) -> None:
    assert console.claims(Path("notes.txt"), text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "| step | loss | grad_norm |\n|---|---|---|\n| 1 | 3.2 | 0.5 |\n",  # one row
        "| step | loss | grad_norm |\n| one | low | high |\n| two | low | high |\n",
        "| model | loss | grad_norm |\n| 7 | 3.2 | 0.5 |\n| 13 | 3.1 | 0.5 |\n",
        "the loss at each step\nfell in runs\n1 2 3 4\n1 2 3 4\n",
    ],
)
def test_a_text_without_rows_of_steps_is_none(text: str) -> None:
    assert not console.claims(Path("notes.txt"), text.encode())
