"""TensorBoard's JSON download."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradtrend.errors import InputError
from gradtrend.ingest.formats.tensorboard_json import reader
from gradtrend.ingest.reading import ReadOptions
from tests.ingest.readings import long_table

NUMBERS = st.floats(width=32) | st.sampled_from([math.nan, math.inf])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=20), st.booleans())
def test_what_is_written_is_read_back(tmp_path: Path, values: list[float], quoted: bool) -> None:
    path = tmp_path / "run-.-tag-train_grad_norm.json"
    odd = [str(v) if quoted and not math.isfinite(v) else v for v in values]
    path.write_text(json.dumps([[1.7e9 + i, 10 * i, value] for i, value in enumerate(odd)]))
    (reading,) = reader.read(path, ReadOptions())
    assert [(m, s, repr(v)) for m, s, v, *_ in long_table(reading).iter_rows()] == [
        ("train_grad_norm", 10 * i, repr(value)) for i, value in enumerate(values)
    ]
    assert reader.claims(path, path.read_bytes())


def test_claims_by_content(tmp_path: Path) -> None:
    assert reader.claims(Path("x.json"), b"[[1748867102.02, 300, 78.3], [1")
    assert reader.claims(Path("x.json"), b'[[1748867102.02, 300, "NaN"]]')
    assert not reader.claims(Path("x.json"), b"[[1, 2], [3, 4]]")
    assert not reader.claims(Path("x.json"), b'[{"step": 1}]')


def test_a_cut_file_is_read_up_to_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "grad_norm.json"
    path.write_text("[[1.0, 1, 0.5], [2.0, 2, 0.6], [3.0, 3, 0.")
    (reading,) = reader.read(path, ReadOptions())
    assert long_table(reading)["value"].to_list() == [0.5, 0.6]
    assert reading.skipped_count == 1


def test_no_points_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "grad_norm.json"
    path.write_text("[]")
    with pytest.raises(InputError, match="no triple"):
        reader.read(path, ReadOptions())
