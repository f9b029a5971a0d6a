"""JSON lines as people and programs write them: every number is kept, every lost line is said."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from gradtrend.errors import InputError
from gradtrend.ingest.files import streams
from gradtrend.ingest.formats.jsonl import reader as jsonl
from gradtrend.ingest.reading import MAX_SKIPPED_KEPT, Reading, ReadOptions, columns
from tests.ingest.readings import SCHEMA, long_table

NAN, INF = math.nan, math.inf


def read(folder: Path, text: str | bytes) -> Reading:
    path = folder / "metrics.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    (reading,) = jsonl.read(path, ReadOptions())
    assert long_table(reading).schema == SCHEMA
    return reading


def points(reading: Reading, metric: str = "grad_norm") -> list[tuple[int | None, str]]:
    rows = long_table(reading).filter(pl.col("metric") == metric)
    return [(step, repr(value)) for step, value in rows.select("step", "value").iter_rows()]


def rows(values: list[Any], metric: str = "grad_norm") -> str:
    return "".join(json.dumps({"step": step, metric: value}) + "\n" for step, value in enumerate(values))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("NaN", NAN), ("Infinity", INF), ("-Infinity", -INF), ('"nan"', NAN), ('"NaN"', NAN), ('"inf"', INF),
        ('"-inf"', -INF), ('"Infinity"', INF), ('"-Infinity"', -INF), ('"1.5"', 1.5), ('" 2e-3 "', 2e-3),
        ('"-nan"', NAN),
        ("1", 1.0), ("-0.0", -0.0), ("1e400", INF), ("-1e400", -INF), ("1" + "0" * 400, INF), ("-1" + "0" * 400, -INF),
        ("4e-324", 4e-324), ("0.1", 0.1), ("[0.25]", 0.25), ('["nan"]', NAN),
    ],
)  # fmt: skip
def test_a_number_however_written(tmp_path: Path, written: str, value: float) -> None:
    reading = read(tmp_path, f'{{"step": 3, "grad_norm": {written}}}\n')
    assert points(reading) == [(3, repr(value))]
    assert reading.skipped_count == 0


@pytest.mark.parametrize(
    "written", ["true", "false", '"high"', '""', "[]", "[1, 2]", "{}", "null", '"1_000"', '"0x10"', '{"a": "b"}']
)
def test_what_is_no_number_is_left_out_without_a_word(tmp_path: Path, written: str) -> None:
    reading = read(tmp_path, f'{{"step": 3, "grad_norm": {written}, "loss": 1.0}}\n')
    assert long_table(reading)["metric"].to_list() == ["loss"]
    assert reading.skipped_count == 0


@pytest.mark.parametrize(
    "key",
    ["step", "global_step", "_step", "trainer/global_step", "iteration", "iter", "num_updates", "train/global_step"],
)
@pytest.mark.parametrize("step", ["7", "7.0", '"7"', "7e0"])
def test_the_step_under_its_usual_names(tmp_path: Path, key: str, step: str) -> None:
    reading = read(tmp_path, f'{{"epoch": 1, "{key}": {step}, "grad_norm": 1.0}}\n')
    assert points(reading) == [(7, "1.0")]
    assert long_table(reading)["metric"].to_list() == ["epoch", "grad_norm"]


def test_the_finest_counter_is_the_step(tmp_path: Path) -> None:
    reading = read(tmp_path, '{"epoch": 2, "iteration": 40, "step": 41, "grad_norm": 1.0}\n')
    assert points(reading) == [(41, "1.0")]


@pytest.mark.parametrize("step", ["null", "1.5", "NaN", "true", '"seven"', "1e30", str(2**63), "[7, 8]"])
def test_a_step_that_is_none_is_no_step(tmp_path: Path, step: str) -> None:
    assert points(read(tmp_path, f'{{"step": {step}, "grad_norm": 1.0}}\n')) == [(None, "1.0")]


def test_epochs_count_where_nothing_finer_does(tmp_path: Path) -> None:
    assert points(read(tmp_path, '{"epoch": 1, "grad_norm": 1.0}\n{"epoch": 2, "grad_norm": 2}\n')) == [
        (1, "1.0"), (2, "2.0"),
    ]  # fmt: skip


def test_huge_steps_and_negative_ones(tmp_path: Path) -> None:
    for step in (2**53 + 1, 2**62, -5):
        assert points(read(tmp_path, f'{{"step": {step}, "grad_norm": 1.0}}\n')) == [(step, "1.0")]


def test_nested_keys_are_joined(tmp_path: Path) -> None:
    reading = read(
        tmp_path, '{"step": 1, "train": {"grad_norm": 2.0, "loss": {"total": 3.0}}, "grad_norm": {"fc": 4.0}}\n'
    )
    assert long_table(reading).select("metric", "value").rows() == [
        ("train/grad_norm", 2.0), ("train/loss/total", 3.0), ("grad_norm/fc", 4.0),
    ]  # fmt: skip


def test_rows_of_several_kinds(tmp_path: Path) -> None:
    text = (
        '{"event": "start", "config": {"lr": 0.1, "name": "x"}}\n'
        '{"step": 0, "train_loss": 2.5, "gradient_norm": 1.0}\n'
        '{"step": 0, "val_loss": 2.6}\n'
        '{"step": 1, "train_loss": 2.4, "gradient_norm": NaN}\n'
        '["a", "list"]\n\n   \n'
        '{"message": "done"}\n'
    )
    reading = read(tmp_path, text)
    assert points(reading, "gradient_norm") == [(0, "1.0"), (1, "nan")]
    assert points(reading, "val_loss") == [(0, "2.6")]
    assert "config/lr" not in reading.series
    assert reading.settings.learning_rate == 0.1
    assert long_table(reading).filter(pl.col("metric") == "gradient_norm")["line"].to_list() == [2, 4]
    assert [(piece.line, piece.reason) for piece in reading.skipped] == [(5, "not a JSON object")]


def test_times_in_seconds_and_milliseconds(tmp_path: Path) -> None:
    text = '{"step": 0, "loss": 1, "timestamp": 1700000000.5}\n{"step": 1, "loss": 1, "timestamp": 1700000001500}\n'
    assert long_table(read(tmp_path, text))["time"].to_list() == [1700000000.5, 1700000001.5]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 2.0, None, None], ["1.0", "2.0", "nan", "nan"]),  # a strict writer after a collapse
        ([1.0, None, 2.0, 3.0], ["1.0", "nan", "2.0", "3.0"]),
        ([1.0, None, None, None, 2.0, None, None, None, 3.0], ["1.0", "2.0", "3.0"]),  # logged every fourth row
        ([None, None, None], []),
        ([None, None, None, None, 1.0], ["1.0"]),
    ],
)
def test_null_is_nan_or_not_logged(tmp_path: Path, values: list[Any], expected: list[str]) -> None:
    assert [value for _, value in points(read(tmp_path, rows(values)))] == expected


def test_duplicate_steps_are_all_kept_in_order(tmp_path: Path) -> None:
    text = "".join(f'{{"step": {step}, "grad_norm": {value}}}\n' for step, value in [(1, 1), (1, 2), (0, 3), (1, 4)])
    assert points(read(tmp_path, text)) == [(1, "1.0"), (1, "2.0"), (0, "3.0"), (1, "4.0")]


LINES = [f'{{"step": {step}, "grad_norm": {step}.5}}'.encode() for step in range(4)]
EXPECTED = [(step, f"{step}.5") for step in range(4)]


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n".join(LINES),
        b"\xef\xbb\xbf" + b"\n".join(LINES) + b"\n",
        b"\n\n".join(LINES) + b"\n\0\0\0\0",
        "\r\n".join(line.decode() for line in LINES).encode("utf-16"),
        gzip.compress(b"\n".join(LINES)),
        zstandard.compress(b"\n".join(LINES)),
    ],
    ids=["crlf", "bom", "blank lines and zeros", "utf-16", "gz", "zst"],
)
def test_line_ends_encodings_and_compression(tmp_path: Path, data: bytes) -> None:
    reading = read(tmp_path, data)
    assert points(reading) == EXPECTED
    assert reading.skipped_count == 0
    assert jsonl.claims(Path("metrics.jsonl.gz"), data)


def test_a_cut_last_line_is_said_and_the_rest_used(tmp_path: Path) -> None:
    for cut in range(1, len(LINES[3])):
        reading = read(tmp_path, b"\n".join(LINES)[:-cut])
        assert points(reading) == EXPECTED[:3]
        assert [(piece.line, piece.reason) for piece in reading.skipped] == [(4, "truncated")]


def test_a_cut_compressed_file_is_used_up_to_the_cut(tmp_path: Path) -> None:
    text = rows([float(i) for i in range(5000)])
    reading = read(tmp_path, gzip.compress(text.encode())[:-2000])
    assert points(reading)[:100] == [(i, f"{i}.0") for i in range(100)]
    assert any("ends early" in piece.reason for piece in reading.skipped)


def test_bad_lines_are_counted_and_the_first_hundred_listed(tmp_path: Path) -> None:
    reading = read(tmp_path, b"\n".join([b"\xfa\xfb{", *LINES, *[b"oops"] * 300]) + b"\n")
    assert points(reading) == EXPECTED
    assert (reading.skipped_count, len(reading.skipped)) == (301, MAX_SKIPPED_KEPT)
    assert reading.skipped[0].line == 1


def test_deep_nesting_is_no_crash(tmp_path: Path) -> None:
    deep = b'{"a": ' * 5000 + b"1" + b"}" * 5000
    fair = b'{"step": 9, "a": ' + b'{"b": ' * 50 + b"1" + b"}" * 51
    reading = read(tmp_path, b"\n".join([*LINES, deep, fair, b"[" * 100_000]) + b"\n")
    assert points(reading) == EXPECTED
    assert long_table(reading).filter(pl.col("step") == 9)["metric"].to_list() == ["a" + "/b" * 50]


def test_an_endless_line_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "CHUNK_BYTES", 64)
    monkeypatch.setattr(streams, "LONGEST_LINE", 256)
    reading = read(tmp_path, b"\n".join([*LINES[:2], b'{"step": 7, "data": "' + b"x" * 5000 + b'"}', *LINES[2:]]))
    assert points(reading) == EXPECTED
    assert [piece.line for piece in reading.skipped] == [3]


@pytest.mark.parametrize(
    "data", [bytes(range(256)) * 40, b"", b"\n\n", b"hello\nworld\n", b"[1, 2]\n", b"\x1f\x8bgarbage"]
)
def test_nothing_of_json_is_a_clear_error(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InputError):
        read(tmp_path, data)


@pytest.mark.parametrize(
    ("name", "head", "claimed"),
    [
        ("metrics.jsonl", b"", True),
        ("metrics.jsonl", b"garbage", True),
        ("METRICS.JSONL", b"x", True),
        ("train.jsonl.gz", b"x", True),
        ("samples.jsonl", b'{"text": "a", "label": 3}\n', False),
        ("truth.jsonl", b'{"case": "a", "verdict": ["stable"], "onset": null}\n', False),
        ("anything", b'{"step": 1, "loss": 2.0}\n{"step": 2, "lo', True),
        ("log.txt", b'{"train_lr": 0.1, "grad_norm": 1.0, "epoch": 0}\n', True),
        ("console.log", b"step 1 loss 2.0\nstep 2 loss 1.9\n", False),
        ("notes.txt", b"hello\nhello\nhello\n" + b'{"step": 1, "loss": 2.0}\n', False),
    ],
)
def test_claims(name: str, head: bytes, claimed: bool) -> None:
    assert jsonl.claims(Path(name), head) is claimed


VALUES = st.floats(width=64) | st.sampled_from([0.0, -0.0, 1e-300, NAN, INF, -INF]) | st.integers(-(2**70), 2**70)
NAMES = st.text("abcgrdnom_ .\u00fc\u4e2d", min_size=1, max_size=12).filter(lambda name: name.strip() and name != "i")


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-(2**62), 2**62), st.dictionaries(NAMES, VALUES, min_size=1, max_size=4)), min_size=1
    ),
    st.booleans(),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
    st.integers(20, 300),
)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    log: list[tuple[int, dict[str, float]]],
    as_text: bool,
    end: str,
    chunk: int,
) -> None:
    lines = [
        json.dumps({"step": step, **{name: str(value) if as_text else value for name, value in row.items()}})
        for step, row in log
    ]
    before, streams.CHUNK_BYTES = streams.CHUNK_BYTES, chunk
    try:
        reading = read(tmp_path_factory.getbasetemp(), end.join(lines))
    finally:
        streams.CHUNK_BYTES = before
    for name in {name for _, row in log for name in row}:
        written = [(step, repr(float(row[name]))) for step, row in log if name in row]
        assert points(reading, name) == written
    assert reading.skipped_count == 0


@pytest.mark.parametrize(("name", "value"), [("name", "value"), ("tag", "value"), ("metricName", "metricValue")])
@pytest.mark.parametrize("count", [3, 2000])
def test_rows_of_one_value(tmp_path: Path, name: str, value: str, count: int) -> None:
    lines = [{name: m, value: i + 0.5, "step": i} for i in range(count) for m in ("loss", "grad_norm")]
    reading = read(tmp_path, "".join(json.dumps(line) + "\n" for line in lines))
    assert set(reading.series) == {"loss", "grad_norm"}
    assert points(reading) == [(i, repr(i + 0.5)) for i in range(count)]


def test_rows_of_one_value_with_an_epoch_a_split_or_a_tag_beside_it(tmp_path: Path) -> None:
    lines = [
        {"epoch": 0, "step": 1, "split": split, "metric": "loss", "value": value}
        for split, value in (("train", 1.5), ("val", 2.5))
    ]
    lines += [{"step": 1, "tag": "train", "name": name, "value": 0.5} for name in ("loss", "grad_norm")]
    reading = read(tmp_path, "".join(json.dumps(line) + "\n" for line in lines))
    assert points(reading, "train/loss") == [(1, "1.5"), (1, "0.5")]
    assert points(reading, "val/loss") == [(1, "2.5")]
    assert points(reading, "train/grad_norm") == [(1, "0.5")]


def test_a_duration_is_no_step(tmp_path: Path) -> None:
    reading = read(tmp_path, '{"time/batch": 1.0, "grad_norm": 2.0}\n')
    assert points(reading) == [(None, "2.0")]
    assert "time/batch" in reading.series


def test_a_row_that_has_a_name_and_a_value_among_others_is_wide(tmp_path: Path) -> None:
    reading = read(tmp_path, '{"name": "ppo", "step": 1, "value": 0.5, "grad_norm": 2.0}\n')
    assert set(reading.series) == {"value", "grad_norm"}


def test_lines_of_a_list(tmp_path: Path) -> None:
    reading = read(tmp_path, '{"step": 1, "grad_norm": 2.0},\n{"step": 2, "grad_norm": 3.0},\n')
    assert points(reading) == [(1, "2.0"), (2, "3.0")]
    assert reading.skipped_count == 0


@pytest.mark.parametrize(
    "key", ["Step", "Iteration", "training_iteration", "time/total_timesteps", "time/iterations", "timesteps_total"]
)
def test_other_names_of_the_step(tmp_path: Path, key: str) -> None:
    assert points(read(tmp_path, json.dumps({key: 7, "grad_norm": 2.0}) + "\n")) == [(7, "2.0")]


@pytest.mark.parametrize("key", ["step", "global_step", "iter", "global_step/max_steps", "step/total_steps"])
def test_a_counter_may_be_told_with_its_end(tmp_path: Path, key: str) -> None:
    lines = "".join(
        f'{{"loss": 1.5, "grad_norm": "{i}.25", "{key}": "{5 * i}/500", "epoch": 0.1}}\n' for i in range(1, 4)
    )
    assert points(read(tmp_path, lines), "grad_norm") == [(5, "1.25"), (10, "2.25"), (15, "3.25")]


def test_text_with_a_slash_is_no_counter(tmp_path: Path) -> None:
    line = '{"loss": 1.5, "grad_norm": 1.0, "model/name": "5/500", "path": "3/4"}\n'
    assert points(read(tmp_path, line), "loss") == [(None, "1.5")]


def test_the_row_that_sums_a_run_up_is_none_of_it(tmp_path: Path) -> None:
    text = (
        '{"loss": 2.5, "grad_norm": 1.0, "global_step/max_steps": "1/2"}\n'
        '{"loss": 2.0, "grad_norm": 1.5, "global_step/max_steps": "2/2"}\n'
        '{"train_runtime": 95.5, "train_loss": 2.25, "global_step/max_steps": "2/2"}\n'
        '{"best_metric": 0.5, "global_step": 2, "log_history": [{"loss": 2.5, "step": 1}, {"loss": 2.0, "step": 2}]}\n'
    )
    reading = read(tmp_path, text)
    assert set(reading.series) == {"loss", "grad_norm", "best_metric"}
    assert points(reading, "loss") == [(1, "2.5"), (2, "2.0")]


def test_ray_tune_repeats_the_settings_in_every_row(tmp_path: Path) -> None:
    row = {"learners": {"p0": {"gradients_default_optimizer_global_norm": 1.5}}, "timesteps_total": None,
           "config": {"lr": 0.005, "grad_clip": 10.0, "env_config": {"loss": 3}}}  # fmt: skip
    reading = read(tmp_path, "".join(json.dumps({**row, "training_iteration": i}) + "\n" for i in (1, 2)))
    assert list(reading.series) == ["learners/p0/gradients_default_optimizer_global_norm"]
    assert points(reading, "learners/p0/gradients_default_optimizer_global_norm") == [(1, "1.5"), (2, "1.5")]
    assert (reading.settings.learning_rate, reading.settings.gradient_clip) == (0.005, 10.0)


@pytest.mark.parametrize("depth", [10, 500, 900, 960, 970, 980, 5000])
def test_a_row_may_be_nested_as_deep_as_the_parser_goes(tmp_path: Path, depth: int) -> None:
    deep = '{"a": ' * depth + "1" + "}" * depth
    reading = read(tmp_path, f'{{"step": 1, "loss": 1.5, "grad_norm": 1.0}}\n{{"step": 2, "loss": 2.5, "x": {deep}}}\n')
    assert points(reading, "loss") in ([(1, "1.5"), (2, "2.5")], [(1, "1.5")])
    assert len(reading.skipped) == 2 - reading.series["loss"].height


def test_an_integer_of_thousands_of_digits_costs_nothing_else(tmp_path: Path) -> None:
    reading = read(tmp_path, f'{{"step": 1, "loss": 1.5, "id": {"9" * 5000}, "small": {"0"}}}\n')
    assert points(reading, "loss") == [(1, "1.5")]
    assert reading.skipped == ()
    assert points(reading, "id") == [(1, "inf")]


def test_metrics_beyond_so_many_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MOST_METRICS", 10)
    monkeypatch.setattr(columns, "MOST_METRICS", 10)
    lines = "".join(f'{{"step": {i}, "loss": 1.5, "only/{i}": {i}}}\n' for i in range(2000))
    reading = read(tmp_path, lines)
    assert len(reading.series) == 10
    assert reading.series["loss"].height == 2000
    assert [piece.reason for piece in reading.skipped] == ["values of metrics beyond the first 10: 1,991"]


@pytest.mark.parametrize("count", [3, 3000])
@pytest.mark.parametrize("key", ["split", "phase", "event", "mode", "stage"])
def test_rows_of_held_out_data_are_series_of_their_own(tmp_path: Path, key: str, count: int) -> None:
    text = "".join(
        f'{{"step": {i}, "{key}": "train", "loss": {i}.5}}\n{{"step": {i}, "{key}": "val", "loss": 9.5, "val_acc": 1}}'
        "\n"
        for i in range(count)
    )
    reading = read(tmp_path, text)
    assert {metric: frame.height for metric, frame in reading.series.items()} == dict.fromkeys(
        ("loss", "val/loss", "val_acc"), count
    )
    assert points(reading, "val/loss")[-1] == (count - 1, "9.5")
