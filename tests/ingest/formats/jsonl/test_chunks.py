"""Whole chunks of JSON lines are read as row by row, or refused."""

from __future__ import annotations

import json
import math
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from gradtrend.ingest.formats.jsonl import chunks
from gradtrend.ingest.formats.jsonl import reader as jsonl
from gradtrend.ingest.formats.jsonl.chunks import ChunkReader

KEYS = (
    "step",
    "global_step",
    "epoch",
    "timestamp",
    "time",
    "loss",
    "grad_norm",
    "a b",
    "note",
    "Step",
    "",
    "line",
    "train_runtime",
    "global_step/max_steps",
)
NUMBERS = (
    st.integers().map(str)
    | st.floats().map(json.dumps)
    | st.integers(0, 50).map(str)
    | st.sampled_from(
        ["NaN", "Infinity", "-Infinity", "1e400", "-0", "-0.0", "1.0", "3.0", "1E5", "5e-324", "0.1", "1e8", "1e11",
         "123456789012345678901234567890", "9223372036854775808", "-9223372036854775808", "9007199254740993", "2e308",
         "9007199254740993.0", "18446744073709551615", "1.0278641529385067e+308", "102786415293850670e291",
         "1760000000", "1760000000.5", "1760000000000", "1760000000000000001"]
    )
)  # fmt: skip
TEXTS = st.sampled_from(
    ["nan", "inf", "1.5", " 2 ", "1_0", "12", "text", "", "1.#IND", "2026-01-01 10:00", "null", "NaN", ": NaN", "{",
     "[", '":', "\\", "\n", "é", "\ud800", "\x1c3", "１２", "infinite", "1e", ".5", "5.", "+1", "0x1",
     "5/500", " 7 / 9", "val", " Test ", "train", "5/", "1/2/3"]
).map(json.dumps)  # fmt: skip
VALUES = (
    NUMBERS
    | NUMBERS
    | TEXTS
    | st.sampled_from(["true", "false", "null", "null", "[1.5]", "[]", "{}", '{"b": 1}', "01", "1.", ".5", "+1", "nan"])
)
COLONS = st.sampled_from([": "] * 6 + [":", ":", " :", " : ", ":\t"])
ROWS = st.lists(st.tuples(st.sampled_from(KEYS), COLONS, VALUES), max_size=5)
LINES = (
    st.builds(lambda pairs, comma: "{" + comma.join(f'"{k}"{colon}{v}' for k, colon, v in pairs) + "}", ROWS,
              st.sampled_from([", ", ","]))
    | st.sampled_from(["", "  ", "[1]", "3", "null", '{"step": 1', "{}{}", '{"step": 1}x', "\0",
                       '{"loss": 1}\r{"loss": 2}'])
)  # fmt: skip


def exact(chunk: bytes, line: int) -> tuple[dict[str, pl.DataFrame] | None, int]:
    bad: list[Any] = []
    return jsonl.read_rows(chunk, line, bad), len(bad)


def assert_same(chunk: bytes, line: int, reader: ChunkReader) -> bool:
    """Whether the chunk was read as a whole; if so, as it is row by row."""
    points = reader.points(chunk, line)
    if points is None:
        return False
    expected, bad = exact(chunk, line)
    assert bad == 0
    assert expected is not None
    assert list(points) == list(expected)
    for metric, rows in points.items():
        assert_frame_equal(rows, expected[metric], check_exact=True)
    return True


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "LEAST_BYTES", 0)
    monkeypatch.setattr(chunks, "MOST_REFUSALS", 1 << 30)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.lists(LINES, min_size=1, max_size=6), min_size=1, max_size=3), st.booleans())
def test_any_lines(chunks: list[list[str]], ended: bool) -> None:
    reader, line = ChunkReader(), 1
    for lines in chunks:
        text = "\n".join(lines) + ("\n" if ended else "")
        assert_same(text.encode("utf-8", "surrogatepass"), line, reader)
        line += len(lines)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_rows_of_one_kind(data: st.DataObject) -> None:
    """Rows as one program writes them: each column keeps to a kind of value, some keys are on some rows only."""
    truth = st.sampled_from(["true", "false"])
    kinds = {"number": NUMBERS, "null": NUMBERS | st.just("null"), "text": TEXTS, "truth": truth}
    columns = data.draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(sorted(kinds)), min_size=1, max_size=5))
    sparse = data.draw(st.booleans())
    lines = []
    for _ in range(data.draw(st.integers(1, 8))):
        keys = [key for key in columns if not sparse or data.draw(st.booleans())]
        lines.append("{" + ", ".join(f"{json.dumps(key)}: {data.draw(kinds[columns[key]])}" for key in keys) + "}\n")
    assert_same("".join(lines).encode("utf-8", "surrogatepass"), 5, ChunkReader())


ROW = {"step": 1, "epoch": 0.5, "grad_norm": 1.25, "loss": 2, "lr": 1e-4, "time": 1.7e9, "split": "train", "ok": True}


@pytest.mark.parametrize(
    "rows",
    [
        [ROW, ROW | {"step": 2, "grad_norm": math.nan, "loss": math.inf}, ROW | {"loss": -math.inf}],
        [ROW | {"grad_norm": None}, ROW],
        [{"global_step": 1, "loss": 1.5}, {"global_step": 1, "val_loss": 2.5}, {"epoch": 3, "loss": 1}],
        [{"step": 1.0, "loss": 1.5}, {"step": 2.0, "loss": 1.25}],
        [{"loss": 1.5}, {"loss": 2.5}],
        [{"step": 1, "at": "2026-01-01T10:00:00", "path": "C:\\runs", "loss": 1.5}],
        [{"step": 1, "timestamp": 1_760_000_000_123, "loss": 1.5}],
        [{"step": 1, "timestamp": 10_698_961_551_755, "loss": 1.5}, {"step": 2, "loss": 1.5}],
        [{"step": 1, "note": "x"}],
    ],
)
def test_usual_logs_are_read_whole(rows: list[dict[str, Any]]) -> None:
    assert assert_same("".join(json.dumps(row) + "\n" for row in rows).encode(), 7, ChunkReader())
    assert assert_same(
        "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode(), 7, ChunkReader()
    )


def test_a_column_that_comes_later_is_learnt() -> None:
    reader = ChunkReader()
    assert assert_same(b'{"step": 1, "loss": 2}\n', 1, reader)
    assert assert_same(b'{"step": 2, "loss": 2.5, "grad_norm": 1.5}\n{"loss": NaN, "step": 3}\n', 2, reader)
    assert assert_same(b'{"step": 4, "loss": 2.5}\n', 4, reader)


@pytest.mark.parametrize(
    "text",
    [
        '{"loss": 1, "loss": 2}', '{"loss": "1.5"}', '{"loss": [1.5]}', '{"a": {"loss": 1}}', '{"loss" : 1}',
        '{"loss": 1}\n\n', '{"loss": true}\n{"loss": 1}', '{"loss": 1}\n{"loss": "high"}',
        '{"step": 9007199254740993.0}',
        '{"loss": 1.0278641529385067e+308}\n{"loss": NaN}', '{"note": ": NaN"}', '{"loss": 1',
    ],
)  # fmt: skip
def test_what_does_not_add_up_is_refused(text: str) -> None:
    assert ChunkReader().points(text.encode(), 1) is None


def test_a_log_that_is_always_refused_is_tried_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOST_REFUSALS", 2)
    reader, good = ChunkReader(), b'{"loss": 1}\n'
    assert reader.points(b'{"loss": "1"}\n', 1) is None
    assert reader.points(good, 2) is not None
    assert [reader.points(b'{"loss": "1"}\n', 3) for _ in range(2)] == [None, None]
    assert reader.points(good, 5) is None


def test_rows_that_all_have_other_names_are_refused() -> None:
    lines = [json.dumps({"step": i, f"a{i}": 1.0, f"b{i}": 2.0}) + "\n" for i in range(2000)]
    assert ChunkReader().points("".join(lines).encode(), 1) is None


def test_a_chunk_of_ever_new_names_is_refused_before_it_is_a_table_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    chunk = b"".join(b'{"step": %d, "loss": 1.5, "only/%d": 2}\n' % (i, i) for i in range(3000))
    learnt: list[int] = []
    learn = ChunkReader._learn
    monkeypatch.setattr(ChunkReader, "_learn", lambda self, text: (learnt.append(len(text)), learn(self, text))[1])
    assert ChunkReader().points(chunk, 1) is None
    assert max(learnt) < len(chunk) / 4
