"""Console logs: what is printed is read back, whatever the form; damage costs only what is damaged."""

from __future__ import annotations

import contextlib
import gzip
import io
import math
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradtrend.errors import InputError
from gradtrend.ingest.files import streams
from gradtrend.ingest.formats.console import reader as console
from gradtrend.ingest.reading import Reading, ReadOptions
from tests.ingest.readings import long_table
from tests.places import RUNS

CONSOLE = RUNS / "console"
Row = tuple[int, float, float]
FORMS: dict[str, Callable[[int, float, float], str]] = {
    "key value": lambda s, loss, norm: f"step {s} loss {loss!r} grad_norm {norm!r}",
    "colon": lambda s, loss, norm: f"[2026-01-01 10:00:00,123][INFO] step: {s}, loss: {loss!r}, grad_norm: {norm!r}",
    "equals": lambda s, loss, norm: f"global_step={s} loss={loss!r} grad_norm={norm!r} lr=1e-3",
    "bars": lambda s, loss, norm: f"step {s}/999999999 | loss = {loss!r} | grad_norm = {norm!r} | 1.2K tok/s",
    "dict": lambda s, loss, norm: str({"step": s, "loss": loss, "grad_norm": norm}),
    "quoted": lambda s, loss, norm: f"{{'step': '{s}', 'loss': '{loss!r}', 'grad_norm': '{norm!r}'}}",
    "json": lambda s, loss, norm: f'x | INFO | {{"step": {s}, "loss": {loss!r}, "grad_norm": {norm!r}}}',
    "average": lambda s, loss, norm: f"step {s}\tloss {loss!r} (1.5)\tgrad_norm {norm!r} (inf)",
    "rank": lambda s, loss, norm: f"[rank0]: step: {s} loss: {loss!r} grad_norm: {norm!r}",
    "tensor": lambda s, loss, norm: f"step {s} loss: tensor({loss!r}, grad_fn=<X>) grad_norm: np.float64({norm!r})",
}
NUMBERS = st.floats(width=64) | st.sampled_from([0.0, 1e-300, math.nan, math.inf, -math.inf])
LOGS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=12).map(
    lambda values: [(3 * i, loss, norm) for i, (loss, norm) in enumerate(values)]
)


def read_text(text: str | bytes) -> Reading:
    data = text if isinstance(text, bytes) else text.encode()
    (reading,) = console.read_stream(io.BufferedReader(io.BytesIO(data)))
    return reading


def points(reading: Reading, metric: str) -> list[tuple[int | None, str]]:
    rows = long_table(reading).filter(pl.col("metric") == metric)
    return [(step, repr(value)) for step, value in rows.select("step", "value").iter_rows()]


@settings(deadline=None)
@given(st.sampled_from(sorted(FORMS)), LOGS)
def test_what_is_printed_is_read_back(form: str, rows: list[Row]) -> None:
    reading = read_text("\n".join(FORMS[form](*row) for row in rows) + "\n")
    assert points(reading, "loss") == [(step, repr(loss)) for step, loss, _ in rows]
    assert points(reading, "grad_norm") == [(step, repr(norm)) for step, _, norm in rows]
    assert long_table(reading)["line"].max() == len(rows)


@settings(deadline=None)
@given(LOGS, st.integers(16, 200), st.sampled_from(["\n", "\r\n", "\r", "\n\x1b[0m\n"]))
def test_chunks_and_line_ends_make_no_difference(rows: list[Row], size: int, end: str) -> None:
    text = end.join(["some talk about loss", *(FORMS["colon"](*row) for row in rows), "done"])
    before, streams.CHUNK_BYTES = streams.CHUNK_BYTES, size
    try:
        reading = read_text(text)
    finally:
        streams.CHUNK_BYTES = before
    assert points(reading, "grad_norm") == [(step, repr(norm)) for step, _, norm in rows]


@settings(deadline=None)
@given(st.sampled_from(sorted(p for p in CONSOLE.glob("*/*") if p.suffix != ".toml")), st.data())
def test_a_cut_log_gives_the_rows_before_the_cut(path: Path, data: st.DataObject) -> None:
    whole = path.read_bytes()
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    cut = cut[: max(cut.rfind(b"\n"), cut.rfind(b"\r")) + 1]
    (full,) = console.read(path, ReadOptions())
    part = read_text(cut)
    for metric in long_table(part)["metric"].unique():
        if "grad" in metric:
            head = points(part, metric)
            values = [value for _, value in points(full, metric)]
            drawn_again = 1 if b"\r" in whole else 0  # a bar's last state counts once the next step begins
            assert [value for _, value in head][: len(head) - drawn_again] == values[: len(head) - drawn_again]


@settings(deadline=None)
@given(
    st.binary(max_size=400) | st.text(alphabet="loss=grad_norm:|{}[]()/ 0123456789.einaf-+\r\n'\"\x1b", max_size=300)
)
def test_no_text_breaks_the_reader(text: bytes | str) -> None:
    with contextlib.suppress(InputError):  # bytes that start like a compressed file
        read_text(text)


def test_one_rank_of_several_is_read() -> None:
    lines = [f"[rank{r}]: step {s} loss {s + r / 10} grad_norm {s}" for s in range(3) for r in (1, 0, 2)]
    reading = read_text("\n".join(lines))
    assert points(reading, "loss") == [(0, "0.0"), (1, "1.0"), (2, "2.0")]
    assert [note.kind for note in reading.notes] == ["ranks"]


def test_a_progress_bar_counts_once_a_step() -> None:
    bars = "".join(
        f"\rEpoch 0:  5%|▌   | {i}/60 [00:01<01:06, 1.1s/it, loss=0.{i - shown}]"
        for i in range(1, 5)
        for shown in (1, 0)
    )
    assert points(read_text(bars), "loss") == [(1, "0.1"), (2, "0.2"), (3, "0.3"), (4, "0.4")]


def test_lines_without_a_step_among_lines_with_one_are_left_out_and_counted() -> None:
    text = "step 1 loss 2.0\nstep 2 loss 1.0\nloss 9.0\nstep 3 loss 0.5\n"
    reading = read_text(text)
    assert points(reading, "loss") == [(1, "2.0"), (2, "1.0"), (3, "0.5")]
    assert reading.skipped_count == 1


def test_a_log_that_counts_nothing_has_no_steps() -> None:
    reading = read_text("loss: 2.0 grad_norm: 1.0\nloss: 1.0 grad_norm: 1.1\n")
    assert points(reading, "grad_norm") == [(None, "1.0"), (None, "1.1")]


def test_digits_are_those_that_the_text_keeps() -> None:
    assert read_text("step 1 loss 1 grad_norm 0.0123\nstep 2 loss 1 grad_norm nan\n").digits == 3
    assert read_text("step 1 loss 1 grad_norm 3.2e+0\n").digits == 2
    assert read_text("step 1 grad_norm 1.112119436264038\n").digits == 16


def test_sub_totals_of_an_epoch_stand_at_its_end() -> None:
    text = (
        "Train | Epoch 35 | 83/332 | 0.89 it/sec | Loss 0.11 | grad_norm 0.0700\n"
        "Train | Epoch 35 | 166/332 | 0.89 it/sec | Loss 0.11 | grad_norm 0.0725\n"
        "Train Summary | Epoch 35 | Loss=0.1127 | grad_norm=0.0732\n"
        "Valid Summary | Epoch 35 | Loss=0.1552 | grad_norm=9.0\n"
    )
    assert [step for step, _ in points(read_text(text), "grad_norm")] == [34 * 332 + 83, 34 * 332 + 166, 35 * 332]


def test_lightly_train_counts_from_one_and_is_read_from_zero() -> None:
    line = (
        "[2026-01-01 10:00:00,123][INFO] Train Step {0:2d}/20 | Epoch 0 | train_loss: 2.0 | grad_norm: {1}"
        " | Profiling [ Step Time 0.69s | Data Time 0.01s |   23 img/s ]"
    )
    text = "\n".join(line.format(step, " nan" if step == 2 else "1.5000") for step in (1, 2, 3))
    assert points(read_text(text), "grad_norm") == [(0, "1.5"), (1, "nan"), (2, "1.5")]


@pytest.mark.parametrize(
    ("name", "text", "is_log"),
    [
        ("train.log", "Args: {}\n", True),
        ("slurm-12.out", "hello\n", True),
        ("train.log.1", "hello\n", True),
        ("log.txt", "hello\n", True),
        ("anything", "step 1 loss 2.0\nstep 2 loss 1.0\n", True),
        ("notes.txt", "we clip grad norm to 1.0 and loss 3\n" * 5, False),
        ("requirements.txt", "torch==2.13.0\nlossless==1.0\n", False),
        ("config.json", '{"loss": 1.0}\n{"loss": 2.0}\n', False),
        ("hparams.yaml", "loss: 1.0\ngrad_norm: 2.0\n", False),
        ("train.py", "loss = 1.0\ngrad_norm = 2.0\nloss = 3.0\n", False),
        ("log_every_num_steps", "1", False),
        ("model.out", "\0\1\2", False),
    ],
)
def test_which_files_are_console_logs(name: str, text: str, is_log: bool) -> None:
    assert console.claims(Path(name), text.encode()) is is_log


def test_a_compressed_log_is_known_by_its_content() -> None:
    data = gzip.compress(b"step 1 loss 2.0\nstep 2 loss 1.0\n")
    assert console.claims(Path("anything.gz"), data)
    assert not console.claims(Path("anything.gz"), gzip.compress(b"hello\n"))


@pytest.mark.parametrize("head", ["1764480000{:03}", "17644800{:02}", "99999999999999{:02}:", "rank: 30000000000{:02}"])
def test_a_time_or_an_id_ahead_of_a_line_is_no_rank(tmp_path: Path, head: str) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"{head.format(i)} step={i} loss={2 - i / 50} grad_norm=1.0\n" for i in range(40)))
    (reading,) = console.read(log, ReadOptions())
    assert reading.series["grad_norm"]["step"].to_list() == list(range(40))


@pytest.mark.parametrize("filling", [" ", "the model loss is ", ".", "-", "'", "\t", "a.", "default"])
def test_a_long_line_is_read_at_once(tmp_path: Path, filling: str) -> None:
    # By the cube of its length, as once, such a line takes minutes.
    log = tmp_path / "train.log"
    rows = "".join(f"step={i} loss={2 - i / 50} grad_norm=1.0\n" for i in range(40))
    log.write_text(f"{rows}loss: 1{filling * (8000 // len(filling))} loss: 2\n")
    (reading,) = console.read(log, ReadOptions())
    assert reading.series["grad_norm"].height == 40
