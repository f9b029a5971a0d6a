from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.model.finding import Evidence
from gradtrend.model.report import Failure, Report, RunReport
from gradtrend.report.json.report import render_json, schema
from gradtrend.report.json.strict import strict_json
from gradtrend.report.wording.style import Style
from gradtrend.version import __version__


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not RFC 8259")


def _load(report: Report) -> Any:
    return json.loads(render_json(report, Style()), parse_constant=_refuse)


def test_every_report_fits_the_schema(report: Report) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(_load(report), schema())


@pytest.mark.parametrize("missing", ["verdict", "nonfinite", "findings", "captures"])
def test_the_schema_refuses_a_run_without_its_fields(report: Report, missing: str) -> None:
    loaded = _load(report)
    del loaded["runs"][0][missing]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(loaded, schema())


def test_the_schema_allows_additions(report: Report) -> None:
    loaded = _load(report) | {"later": 1}
    loaded["runs"][0]["findings"][0]["later"] = {}
    jsonschema.validate(loaded, schema())


def test_the_contract_in_full(exploding: RunReport) -> None:
    loaded = _load(Report(1, (exploding,)))
    assert loaded["schema_version"] == "1.1"
    assert loaded["tool"] == {"name": "gradtrend", "version": __version__}
    assert loaded["exit_code"] == 1
    run = loaded["runs"][0]
    assert (run["run"], run["verdict"], run["confidence"]) == ("out/run", "exploding", 0.996)
    assert run["sources"] == [
        {
            "format": "jsonl",
            "path": "metrics.jsonl",
            "series": 4,
            "points": 412,
            "skipped": [{"line": 413, "offset": None, "reason": "truncated"}],
            "skipped_count": 1,
        }
    ]
    assert run["series"][0] == {
        "metric": "gradient_norm",
        "role": "grad_norm",
        "layer": None,
        "points": 412,
        "first_step": 1,
        "last_step": 412,
        "trend": "exploding",
        "onset_step": 371,
        "baseline": 0.9,
        "peak": 320000.0,
        "decades": 5.55,
        "covers": None,
    }
    assert run["series"][1]["trend"] is None
    assert run["nonfinite"] == {
        "grad_first_step": 398,
        "loss_first_step": 398,
        "order": "same-step",
        "cause": "after-explosion",
        "forward_first_step": 397,
        "lead_steps": 27,
        "recovered": False,
        "grad_count": 15,
        "loss_count": 15,
    }
    assert run["checks"] == {"ran": ["GT101"], "skipped": [{"rule": "GT401", "reason": "no per-layer norms"}]}
    (capture,) = run["captures"]
    replay = capture.pop("replay")
    assert capture == {"path": "debug/nan_capture/rank0/nan_capture.pt", "kind": "lightly-train", "step": 398}
    assert (replay["outcome"], replay["cause"]) == ("confirmed", "precision-range")
    assert replay["sweep"][0]["loss"] is None
    assert replay["sweep"][0]["nonfinite_fields"] == {"loss": "inf", "gradient_norm": "nan"}


def test_findings_come_by_severity_then_rule_then_step(exploding: RunReport) -> None:
    first = exploding.findings[1]
    run = replace(
        exploding,
        findings=(
            exploding.findings[0],
            replace(first, rule="GT201", first_step=2),
            replace(first, first_step=None),
            replace(first, first_step=9, confidence=0.5),
            replace(first, first_step=8),
        ),
    )
    found = _load(Report(1, (run,)))["runs"][0]["findings"]
    assert [(f["severity"], f["rule"], f["first_step"]) for f in found] == [
        ("error", "GT101", 8),
        ("error", "GT101", 9),
        ("error", "GT101", None),
        ("error", "GT201", 2),
        ("info", "GT502", 5),
    ]


def test_non_finite_evidence_is_null(exploding: RunReport) -> None:
    finding = replace(exploding.findings[1], evidence=(Evidence("peak", float("inf"), float("nan")),))
    loaded = _load(Report(1, (replace(exploding, findings=(finding,)),)))
    assert loaded["runs"][0]["findings"][0]["evidence"] == [{"measure": "peak", "observed": None, "limit": None}]


def test_a_file_name_that_is_no_utf8_is_still_json() -> None:
    failure = Failure(b"out/\xff".decode("utf-8", "surrogateescape"), "no such path")
    text = render_json(Report(3, (), (failure,)), Style())
    assert json.loads(text)["failures"][0]["path"].encode("utf-8") == b"out/\\udcff"


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(st.characters(exclude_categories=())) | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_strict_json_is_strict_whatever_is_in_it(value: object) -> None:
    text = strict_json(value)
    json.loads(text, parse_constant=_refuse)
    text.encode("ascii")
