"""`mlruns/` folders: a real one of LightlyTrain, and small ones with every oddity of the format."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from gradtrend.errors import InputError
from gradtrend.ingest.formats.mlflow import files
from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.columns import points_of
from gradtrend.model.runlog import Skipped
from tests.ingest.readings import long_table, read_one
from tests.places import LIGHTLY

STORE = LIGHTLY / "mlflow_filestore_nan"
START = 1_700_000_000_000


def make_run(store: Path, run: str, name: str, start: int, metrics: dict[str, str], stage: str = "active") -> Path:
    experiment = store / "123"
    folder = experiment / run
    (folder / "metrics").mkdir(parents=True)
    (folder / "params").mkdir()
    (experiment / "meta.yaml").write_text("artifact_location: file:///x\nexperiment_id: '123'\nname: toy\n")
    meta = f"run_id: {run}\nrun_name: {name}\nstart_time: {start}\nlifecycle_stage: {stage}\n"
    (folder / "meta.yaml").write_text(meta)
    for metric, text in metrics.items():
        path = folder / "metrics" / metric
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def norm_of(reading: Reading, metric: str = "train/grad norm") -> pl.DataFrame:
    return long_table(reading).filter(pl.col("metric") == metric)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = tmp_path / "mlruns"
    line = f"{START} 1.5 0\n{START + 10} nan 1\n{START + 20} inf 2\n{START + 20} 2.5 2\n"
    make_run(store, "aa11", "first", START, {"train/grad norm": line, "loss": f"{START} 1.0 0\n"})
    make_run(store, "aa22", "second", START + 5, {"train/grad norm": line + f"{START + 30} 1.797693e308 3 d1 abc\n"})
    make_run(store, "bb33", "no metrics", START + 6, {})
    make_run(store, "cc44", "gone", START + 7, {"loss": f"{START} 1.0 0\n"}, stage="deleted")
    return store


def test_lightly_train_s_file_store_equals_its_metrics_jsonl() -> None:
    pattern = r'"gradient_norm": ([-\w.+]+)'
    logged = pl.Series((STORE / "metrics.jsonl").read_text().splitlines()).str.extract(pattern).drop_nulls()
    expected = [float(text) for text in logged]
    reading = read_one(files.read, STORE / "mlruns")
    norm = norm_of(reading, "gradient_norm")
    assert [repr(value) for value in norm["value"].to_list()] == [repr(value) for value in expected]
    assert norm["step"].to_list() == list(range(len(expected)))
    assert math.isnan(norm["value"][14])
    assert reading.settings.framework == "lightly-train"
    assert reading.settings.learning_rate == 0.001
    assert (reading.notes, reading.skipped_count) == ((), 0)


def test_without_a_word_the_newest_run_with_metrics(store: Path) -> None:
    reading = read_one(files.read, store)
    assert norm_of(reading)["step"].to_list() == [0, 1, 2, 2, 3]
    assert [repr(value) for value in norm_of(reading)["value"]] == ["1.5", "nan", "inf", "2.5", "inf"]
    assert norm_of(reading)["time"][1] == (START + 10) / 1000
    assert reading.started == (START + 5) / 1000
    assert reading.run is not None
    assert (reading.run.id, reading.run.name, reading.run.experiment) == ("aa22", "second", ("123", "toy"))


@pytest.mark.parametrize("wanted", ["aa11", "first", "aa1"])
def test_run_id_picks(store: Path, wanted: str) -> None:
    reading = read_one(files.read, store, wanted)
    assert norm_of(reading).height == 4


def test_a_deleted_run_only_by_its_full_id(store: Path) -> None:
    assert long_table(read_one(files.read, store, "cc44")).height == 1
    with pytest.raises(InputError, match="no run cc4 "):
        read_one(files.read, store, "cc4")


@pytest.mark.parametrize(
    ("wanted", "words"), [("aa", "fits 2 runs"), ("zz", "no run zz"), ("bb33", "no readable metric")]
)
def test_a_run_that_is_not_there(store: Path, wanted: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read_one(files.read, store, wanted)
    assert caught.value.hint


def test_an_experiment_and_a_run_folder(store: Path) -> None:
    assert norm_of(read_one(files.read, store / "123")).height == 5
    assert norm_of(read_one(files.read, store / "123" / "aa11")).height == 4
    assert long_table(read_one(files.read, store / "123" / "cc44")).height == 1


def test_claims(store: Path, tmp_path: Path) -> None:
    claims = files.claims
    for folder in (store, store / "123", store / "123" / "aa11"):
        assert claims(folder, b"")
    for folder in (tmp_path, store / "123" / "aa11" / "metrics"):
        assert not claims(folder, b"")
    artifacts_only = tmp_path / "other" / "mlruns"
    (artifacts_only / "1" / "abc" / "artifacts").mkdir(parents=True)
    assert not claims(artifacts_only, b"")


def test_a_run_without_its_meta_file(store: Path) -> None:
    run = store / "123" / "aa11"
    (run / "meta.yaml").unlink()
    assert not files.claims(run, b"")
    (run / "tags").mkdir()
    (run / "tags" / "mlflow.runName").write_text("by tag")
    assert files.claims(run, b"")
    assert norm_of(read_one(files.read, store, "by tag")).height == 4


@pytest.mark.parametrize("meta", [b"", b"\x00\xff", b"run_id: [", b"- 1\n- 2\n", b"run_id: aa11\nstart_time: soon\n"])
def test_a_broken_meta_file(store: Path, meta: bytes) -> None:
    (store / "123" / "aa22" / "meta.yaml").write_bytes(meta)
    assert norm_of(read_one(files.read, store)).height in (4, 5)


def test_old_lines_without_a_step(tmp_path: Path) -> None:
    make_run(tmp_path / "mlruns", "aa", "old", START, {"loss": f"{START} 2.0\n{START + 1} 1.0\n"})
    assert long_table(read_one(files.read, tmp_path / "mlruns"))["step"].to_list() == [None, None]


def test_values_logged_without_a_step_all_lie_at_0(tmp_path: Path) -> None:
    lines = "".join(f"{START + i} {i}.0 0\n" for i in range(3))
    make_run(tmp_path / "mlruns", "aa", "x", START, {"loss": lines, "one": f"{START} 1 0\n"})
    table = long_table(read_one(files.read, tmp_path / "mlruns"))
    assert table.filter(pl.col("metric") == "loss")["step"].to_list() == [None] * 3
    assert table.filter(pl.col("metric") == "one")["step"].to_list() == [0]


def test_rows_come_in_time_order_and_keep_the_logged_order_at_equal_times(tmp_path: Path) -> None:
    lines = f"{START + 5} 3.0 2\n{START} 1.0 0\n{START} 2.0 0\n{START + 1} 9.0 1\n"
    make_run(tmp_path / "mlruns", "aa", "x", START, {"loss": lines})
    assert long_table(read_one(files.read, tmp_path / "mlruns"))["value"].to_list() == [1.0, 2.0, 9.0, 3.0]


@pytest.mark.parametrize(
    ("last", "kept"),
    [("3 0.25 12\n", True), ("3 0.25 12", True), ("3 0.25 1", False), ("3 0.25", False), ("3 0.", False), ("3", False)],
)
def test_a_line_that_the_end_of_the_file_cuts_is_not_believed(tmp_path: Path, last: str, kept: bool) -> None:
    make_run(tmp_path / "mlruns", "aa", "x", START, {"loss": f"1 1.5 10\n2 1.25 11\n{last}"})
    reading = read_one(files.read, tmp_path / "mlruns")
    assert reading.series["loss"]["step"].to_list() == [10, 11, *([12] if kept else [])]
    assert [(piece.line, piece.reason) for piece in reading.skipped] == (
        [] if kept else [(3, "metric loss: truncated")]
    )


@given(cut=st.integers(0, 80), junk=st.binary(max_size=20))
def test_damaged_metric_files(tmp_path_factory: pytest.TempPathFactory, cut: int, junk: bytes) -> None:
    lines = "".join(f"{START + i} 1.{i} {i}\n" for i in range(4)).encode()
    store = tmp_path_factory.mktemp("ml") / "mlruns"
    run = make_run(store, "aa", "x", START, {"loss": f"{START} 1.0 0\n"})
    (run / "metrics" / "grad").write_bytes(lines[:cut] + junk)
    reading = read_one(files.read, store)
    whole = lines[:cut].count(b"\n")
    assert norm_of(reading, "grad")["value"].to_list()[:whole] == [1.0, 1.1, 1.2, 1.3][:whole]


TIMES = st.integers(-(10**9), 2 * 10**12).map(str) | st.sampled_from(["+5", "5.0", "x", "", str(2**63), "\u0665"])
VALUES = (
    st.floats().map(repr)
    | st.floats().map("{:.3g}".format)
    | st.sampled_from(
        ["nan", "-nan", "NaN", "inf", "-Infinity", "1e400", "-1.797693e308", "1_0", "0x1", ".5", "5.", "a", ""]
    )
)
STEPS = st.integers(0, 1000).map(str) | st.sampled_from(["-3", "1.0", "", "7 d1 abc", str(2**70), "1 ", "1\t"])
PLAIN = st.tuples(st.integers(0, 2 * 10**12).map(str), VALUES, st.integers(0, 1000).map(str)).map(" ".join)
ANY = st.tuples(TIMES, VALUES, STEPS).map(" ".join) | st.sampled_from(["", " ", "#", '"1 2 3"', "\x0c", "1 2\x853"])
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\n"])


@settings(max_examples=300, deadline=None)
@given(st.lists(PLAIN, max_size=6) | st.lists(ANY | PLAIN, max_size=6), ENDS, st.booleans())
def test_a_file_read_at_once_holds_what_its_lines_hold(lines: list[str], end: str, ended: bool) -> None:
    content = (end.join(lines) + (end if ended else "")).encode()
    plain = files.plain_points(content)
    if plain is not None:
        skipped: list[Skipped] = []
        by_line = points_of(files.read_lines("loss", content, skipped))
        assert skipped == []
        assert_frame_equal(plain.drop("time"), by_line["loss"].drop("time"), check_exact=True)
        assert_frame_equal(plain.select("time"), by_line["loss"].select("time"), rel_tol=1e-15, abs_tol=0.0)


def test_usual_files_are_read_at_once() -> None:
    assert files.plain_points(b"1 nan 0\n2 1.5 1\n") is not None
    assert files.plain_points(b"1 1.5\n2 2.5\n") is None


def test_a_bad_line_is_listed(tmp_path: Path) -> None:
    make_run(
        tmp_path / "mlruns",
        "aa",
        "x",
        START,
        {"a/loss": f"{START} 2.0 0\nhello\n{START} 1 {2**70}\n{START + 1} 1.0 1\n"},
    )
    reading = read_one(files.read, tmp_path / "mlruns")
    assert long_table(reading)["step"].to_list() == [0, 1]
    assert [piece.line for piece in reading.skipped] == [2, 3]
    assert "a/loss" in reading.skipped[0].reason


def test_a_store_without_runs(tmp_path: Path) -> None:
    (tmp_path / "mlruns").mkdir()
    with pytest.raises(InputError, match="no run with metrics"):
        read_one(files.read, tmp_path / "mlruns")


def test_a_file_in_place_of_a_store(tmp_path: Path) -> None:
    (tmp_path / "mlruns").write_text("x")
    with pytest.raises(InputError, match="cannot read"):
        read_one(files.read, tmp_path / "mlruns")


def test_reading_changes_nothing(tmp_path: Path) -> None:
    copy = tmp_path / "mlruns"
    shutil.copytree(STORE / "mlruns", copy)
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    read_one(files.read, copy)
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*")} == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_in_a_store_are_not_waited_for(store: Path) -> None:
    run = store / "123" / "aa22"
    (run / "tags").mkdir(exist_ok=True)
    (run / "params").mkdir(exist_ok=True)
    for place in ("metrics/pipe", "tags/mlflow.runName", "params/lr"):
        (run / place).unlink(missing_ok=True)
        os.mkfifo(run / place)
    reading = read_one(files.read, store, "aa22")
    assert any("pipe" in skipped.reason for skipped in reading.skipped)


def test_a_metric_whose_file_has_a_name_that_is_no_text(tmp_path: Path) -> None:
    points = "".join(f"{START + step} 1.5 {step}\n" for step in range(5))
    run = make_run(tmp_path, "a" * 32, "toy", START, {"loss": points})
    os.rename(run / "metrics/loss", os.fsencode(run / "metrics") + b"/loss\xff")  # noqa: PTH104
    reading = read_one(files.read, tmp_path)
    assert list(reading.series) == ["loss\\udcff"]
