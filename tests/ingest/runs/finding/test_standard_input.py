"""`-`: what is piped in is read as from a file."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gradtrend.cli import main
from gradtrend.errors import InputError
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.runs.finding import standard_input
from tests.ingest.readings import long_table
from tests.places import EXPLODING

Pipe = Callable[..., Result]


@pytest.fixture
def pipe() -> Pipe:
    """`pipe(data, *words)` runs `gradtrend analyze -` with the data on standard input."""
    return lambda data, *words: CliRunner().invoke(main, ["analyze", "-", *words], input=data)


def verdict(done: Result) -> tuple[str, str, int | None]:
    (run,) = json.loads(done.stdout)["runs"]
    return run["run"], run["verdict"], run["nonfinite"]["grad_first_step"]


@pytest.mark.parametrize(("name", "format_", "first"), [("metrics.jsonl", "jsonl", 7), ("train.log", "console", 7)])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_log_is_judged_as_its_file_is(
    pipe: Pipe, name: str, format_: str, first: int, pack: Callable[[bytes], bytes]
) -> None:
    done = pipe(pack((EXPLODING / name).read_bytes()), "--format", "json")
    assert done.exit_code == 1
    assert verdict(done) == ("-", "exploding", first)
    (source,) = json.loads(done.stdout)["runs"][0]["sources"]
    assert (source["format"], source["path"]) == (format_, "-")


def test_the_source_can_be_named(pipe: Pipe) -> None:
    rows = "".join(f'{{"n": {i}, "norm_x": {1 + i % 2}}}\n' for i in range(20))
    done = pipe(rows, "--source", "jsonl", "--metric", "norm_x", "--format", "json")
    assert json.loads(done.stdout)["runs"][0]["verdict"] == "stable"


@pytest.mark.parametrize("data", ["", "\n\n", "  "])
def test_nothing_on_it_is_one_clear_line(pipe: Pipe, data: str) -> None:
    done = pipe(data)
    assert done.exit_code == 3
    assert "nothing came on standard input" in done.output
    assert "| gradtrend analyze -" in done.output


def test_prose_is_not_judged(pipe: Pipe) -> None:
    done = pipe("We watch the gradient norm and the loss of every step.\n" * 20)
    assert done.exit_code == 3
    assert "undetermined" in done.output


def test_a_format_that_needs_a_file(pipe: Pipe) -> None:
    done = pipe("x", "--source", "mlflow")
    assert done.exit_code == 3
    assert "mlflow cannot be read from standard input" in done.output


def test_series_lists_what_came() -> None:
    done = CliRunner().invoke(main, ["series", "-"], input=(EXPLODING / "metrics.jsonl").read_bytes())
    assert done.exit_code == 0
    assert "gradient_norm" in done.stdout


class _Drip(io.RawIOBase):
    """A pipe that hands over a few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        piece = self._data.read(min(7, len(buffer)))
        buffer[: len(piece)] = piece
        return len(piece)


@pytest.mark.parametrize("lines", [3, 5000])
def test_a_slow_pipe_loses_nothing(monkeypatch: pytest.MonkeyPatch, lines: int) -> None:
    data = "".join(f'{{"step": {i}, "grad_norm": {i}.5}}\n' for i in range(lines)).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(_Drip(data))))
    (reading,) = standard_input.adapter("auto").read(standard_input.PATH, ReadOptions())
    assert isinstance(reading, Reading)
    assert reading.format == "jsonl"
    assert long_table(reading)["step"].to_list() == list(range(lines))


def test_formats_are_those_that_can_be_streamed() -> None:
    for name in ("auto", "console", "jsonl"):
        assert standard_input.adapter(name).claims(Path("-"), b"")
    with pytest.raises(InputError, match="tensorboard"):
        standard_input.adapter("tensorboard")


# --- named pipes ------------------------------------------------------------------------------------------------------


@pytest.fixture
def named_pipe(tmp_path: Path) -> Path:
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    os.mkfifo(tmp_path / "train.pipe")
    return tmp_path / "train.pipe"


def _write_later(pipe: Path, data: bytes, pause: float = 0.0) -> threading.Thread:
    def write() -> None:
        with pipe.open("wb") as stream:  # waits for the reader
            time.sleep(pause)
            stream.write(data)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("pause", [0.0, 0.3])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_named_pipe_is_read_as_standard_input_is(
    named_pipe: Path, pack: Callable[[bytes], bytes], pause: float
) -> None:
    writer = _write_later(named_pipe, pack((EXPLODING / "metrics.jsonl").read_bytes()), pause)
    done = CliRunner().invoke(main, ["analyze", str(named_pipe), "--format", "json"])
    writer.join()
    assert done.exit_code == 1
    assert verdict(done) == (str(named_pipe), "exploding", 7)


def test_a_pipe_without_a_writer_is_not_waited_for_for_ever(named_pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standard_input, "SECONDS_FOR_A_PIPE", 0.1)
    done = CliRunner().invoke(main, ["analyze", str(named_pipe)])
    assert done.exit_code == 3
    assert "nobody writes to this pipe" in done.output


def test_an_empty_pipe_says_so(named_pipe: Path) -> None:
    writer = _write_later(named_pipe, b"\n", 0.1)
    done = CliRunner().invoke(main, ["analyze", str(named_pipe)])
    writer.join()
    assert done.exit_code == 3
    assert "nothing came through this pipe" in done.output


def test_closed_standard_input_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="closed"):
        standard_input.adapter("auto").read(standard_input.PATH, ReadOptions())


def test_a_table_is_read_as_its_file_is(pipe: Pipe) -> None:
    rows = "".join(f"{i},{2 - i / 50},{1 + i % 3 / 9}\n" for i in range(30))
    for done in (
        pipe(f"step,loss,grad_norm\n{rows}", "--format", "json"),
        pipe(f"step,loss,my size\n{rows}", "--metric", "my size", "--format", "json"),
    ):
        (run,) = json.loads(done.stdout)["runs"]
        assert (run["verdict"], run["sources"][0]["format"]) == ("stable", "csv")


def test_a_first_row_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f'{{"step": {i}, "grad_norm": {i}.5, "text": "{"x" * 90_000}"}}\n' for i in range(3))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(_Drip(rows.encode()))))
    (reading,) = standard_input.adapter("auto").read(standard_input.PATH, ReadOptions())
    assert (reading.format, reading.series["grad_norm"].height) == ("jsonl", 3)
