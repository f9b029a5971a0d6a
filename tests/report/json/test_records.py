"""A record on a line and in a table comes back as it was; what is strange in it is text like any other."""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradtrend.model.many.record import Record
from gradtrend.model.words import Severity, Verdict
from gradtrend.pipeline.analyze import analyze_paths
from gradtrend.pipeline.runs import AnalyzeOptions
from gradtrend.pipeline.scan.files import merged, records_bytes, records_frame
from gradtrend.pipeline.scan.wanted import Wanted
from gradtrend.report.json.records import record_from_line, record_line, record_of, record_to_dict
from tests.pipeline.scan.scans import records
from tests.places import EXPLODING


def refused(constant: str) -> Any:
    raise ValueError(constant)


def strictly(line: str) -> Any:
    """What a line holds by RFC 8259, which has no NaN."""
    return json.loads(line, parse_constant=refused)


@settings(max_examples=150)
@given(record=records())
def test_a_line_comes_back_as_it_was(record: Record) -> None:
    line = record_line(record)
    assert line.endswith("\n")
    assert line.isascii()
    assert len(line.splitlines()) == 1
    found = strictly(line)
    assert found["sick"] is record.is_sick
    assert repr(record_from_line(line)) == repr(record)
    assert repr(record_from_line(line.encode())) == repr(record)


@settings(max_examples=40)
@given(made=st.lists(records(), max_size=4, unique_by=lambda record: (record.run, record.name)))
def test_a_parquet_file_comes_back_as_it_was(made: list[Record]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".parquet", ".jsonl"):
            path = Path(folder, f"x{suffix}")
            path.write_bytes(records_bytes(made, suffix))
            found = merged([path], Wanted())
            assert not found.failures
            assert sorted(map(repr, found.records)) == sorted(map(repr, made))
    assert records_frame(made).height == len(made)
    assert pl.read_csv(records_bytes(made, ".csv"), infer_schema=False).height == len(made)


def test_numbers_that_are_not_finite_are_null_and_named() -> None:
    record = Record("r", peak=math.inf, last=-math.inf, last_loss=math.nan, baseline=1.0)
    found = strictly(record_line(record))
    assert (found["peak"], found["last"], found["last_loss"], found["baseline"]) == (None, None, None, 1.0)
    assert found["nonfinite_fields"] == {"peak": "inf", "last": "-inf", "last_loss": "nan"}
    assert "nonfinite_fields" not in strictly(record_line(Record("r")))


def test_bytes_of_names_that_no_text_has_are_written_out(tmp_path: Path) -> None:
    strange = Record("a\udcff\n\x1b[31m", name="\ud800", rules=("\udcff",), hyperparameters=(("\udcfe", "\udcff"),))
    found = strictly(record_line(strange))
    assert (found["run"], found["name"]) == ("a\\udcff\n\x1b[31m", "\\ud800")
    for suffix in (".parquet", ".jsonl"):
        (tmp_path / f"x{suffix}").write_bytes(records_bytes([strange], suffix))
        (back,) = merged([tmp_path / f"x{suffix}"], Wanted()).records
        assert (back.run, back.rules, back.hyperparameters) == (found["run"], ("\\udcff",), (("\\udcfe", "\\udcff"),))
    assert b"a\\udcff" in records_bytes([strange], ".csv")


def test_fields_of_another_kind_are_not_known() -> None:
    good = record_to_dict(Record("r", verdict=Verdict.STABLE, severity=Severity.INFO, points=3, rules=("GT101",)))
    for name, value in {
        "verdict": ["stable"],
        "severity": "worse",
        "points": True,
        "onset_step": 1.5,
        "last_step": 10**30,
        "peak": "1",
        "confidence": 1e300,
        "baseline": 10**400,
        "modified": "yesterday",
        "rules": "GT101",
        "next": [1, None, "x"],
        "hyperparameters": [],
        "nonfinite_fields": {"peak": "infinite"},
        "unknown": {},
    }.items():
        back = record_from_line(json.dumps(good | {name: value}))
        assert back is not None, name
        plain = {"next": ("x",)}.get(name, getattr(Record("r"), name, None))
        assert getattr(back, name, None) == plain, name
        records_frame([back])


NO_RECORDS = ["", "null", "[]", "{}", '{"run": 1, "verdict": null, "hyperparameters": {}}', "[" * 100_000, "\x00"]


@pytest.mark.parametrize("line", [*NO_RECORDS, '{"step": 1, "loss": 2}', f'{{"run": {"9" * 5000}}}'])
def test_what_is_no_record_is_none(line: str) -> None:
    assert record_from_line(line) is None


def test_a_report_in_short() -> None:
    ((report,), _) = analyze_paths((str(EXPLODING),), AnalyzeOptions())
    record = record_of(report)
    assert (record.run, record.verdict, record.severity) == (str(EXPLODING), Verdict.EXPLODING, Severity.ERROR)
    assert record.is_sick
    assert not record.is_well
    assert record.rules[0] == "GT101"
    assert record.next == tuple(advice.action for advice in report.next)
    assert report.nonfinite is not None
    assert record.nonfinite_step == report.nonfinite.grad_first_step == 7
    assert record.why == report.why
    series = next(series for series in report.series if series.metric == record.metric)
    assert (record.points, record.last_step, record.peak) == (series.points, series.last_step, series.peak)
    assert repr(record_from_line(record_line(replace(record, size=7)))) == repr(replace(record, size=7))
