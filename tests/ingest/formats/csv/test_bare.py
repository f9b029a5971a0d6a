"""Tables without a header, whose columns the user names."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradtrend.errors import ConfigError, InputError
from gradtrend.ingest.formats.csv import reader
from gradtrend.ingest.reading import Reading, ReadOptions
from gradtrend.ingest.reading.named_columns import check_columns

NAMES = ("step", "loss", "grad_norm")


def read(folder: Path, text: str, *columns: str) -> Reading:
    path = folder / "numbers.txt"
    path.write_text(text)
    (reading,) = reader.read(path, ReadOptions(columns=columns))
    return reading


def points(reading: Reading, metric: str) -> list[tuple[int | None, float]]:
    return reading.series[metric].select("step", "value").rows()


@pytest.mark.parametrize("separator", [" ", "   ", "\t", ",", ", ", ";", "|", " | "])
def test_whatever_separates_them(tmp_path: Path, separator: str) -> None:
    text = "\n".join(separator.join(row) for row in (("10", "2.5", "0.75"), ("20", "2.25", "nan"), ("30", "2", "1e-3")))
    reading = read(tmp_path, text + "\n", *NAMES)
    assert points(reading, "loss") == [(10, 2.5), (20, 2.25), (30, 2.0)]
    assert [repr(value) for _, value in points(reading, "grad_norm")] == ["0.75", "nan", "0.001"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(allow_nan=False), st.floats(allow_nan=False)), min_size=1))
def test_what_is_written_is_read_back(tmp_path: Path, rows: list[tuple[int, float, float]]) -> None:
    reading = read(tmp_path, "".join(f"{step} {loss!r} {norm!r}\n" for step, loss, norm in rows), *NAMES)
    assert points(reading, "grad_norm") == [(step, norm) for step, _, norm in rows]


def test_columns_that_are_not_wanted_may_hold_anything(tmp_path: Path) -> None:
    text = "2026-01-05T10:00:00 a.npz 1 2.5 0.75\n2026-01-05T10:00:01 b.npz 2 2.4 0.8\n"
    reading = read(tmp_path, text, "-", "_", "step", "loss", "grad_norm")
    assert points(reading, "grad_norm") == [(1, 0.75), (2, 0.8)]
    assert set(reading.series) == {"loss", "grad_norm"}


def test_a_header_and_text_between_the_rows_are_none(tmp_path: Path) -> None:
    text = "iteration,training loss,gnorm\n1,2.5,0.7\nsaved a checkpoint\n\n2,2.4,0.8\n# evaluating 3\n3,2.3,0.9\n"
    reading = read(tmp_path, text, *NAMES)
    assert points(reading, "grad_norm") == [(1, 0.7), (2, 0.8), (3, 0.9)]
    assert reading.skipped == ()


def test_a_row_of_other_numbers_is_told(tmp_path: Path) -> None:
    reading = read(tmp_path, "1 2.5 0.7\n2 2.4\n3 2.3 0.9\n", *NAMES)
    assert points(reading, "loss") == [(1, 2.5), (3, 2.3)]
    assert [(piece.line, piece.reason) for piece in reading.skipped] == [(2, "2 numbers where --columns has 3 names")]


def test_too_few_or_too_many_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no line has 2 numbers") as raised:
        read(tmp_path, "1 2.5 0.7\n2 2.4 0.8\n", "step", "loss")
    assert raised.value.hint is not None
    assert "Line 1 has 3" in raised.value.hint
    with pytest.raises(InputError, match="no line has 3 numbers"):
        read(tmp_path, "nothing here is a number\n", *NAMES)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("step", "loss", "loss"), "names 'loss' twice"),
        (("step",), "names nothing to be judged"),
        (("-", "_", ""), "names nothing to be judged"),
    ],
)
def test_names_that_cannot_be(columns: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_columns(columns)


def test_columns_that_are_left_out_may_be_called_alike() -> None:
    check_columns(("-", "-", "grad_norm", ""))


def test_as_a_stream() -> None:
    (reading,) = reader.read_stream(io.BytesIO(b"1 2.5 0.7\n2 2.4 0.8\n"), NAMES)
    assert points(reading, "loss") == [(1, 2.5), (2, 2.4)]


def test_rows_without_a_step_are_numbered_later(tmp_path: Path) -> None:
    assert points(read(tmp_path, "2.5 0.7\n2.4 0.8\n", "loss", "grad_norm"), "loss") == [(None, 2.5), (None, 2.4)]
