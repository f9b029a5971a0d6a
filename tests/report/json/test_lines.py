from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import jsonschema

from gradtrend.model.report import Checks, Report, SkippedRule
from gradtrend.report.json.lines import render_jsonl
from gradtrend.report.json.report import render_json, schema
from gradtrend.report.wording.style import Style


def _lines(report: Report) -> list[Any]:
    return [json.loads(line) for line in render_jsonl(report, Style()).splitlines()]


def test_with_the_checks_put_in_their_places_it_is_the_json_report(report: Report) -> None:
    first, *runs = _lines(report)
    again = first | {"runs": [run | {"checks": first["checks"][run["checks"]["list"]]} for run in runs]}
    del again["checks"]
    assert again == json.loads(render_json(report, Style()))
    jsonschema.validate(again, schema())


def test_each_line_is_as_the_schema_says(report: Report) -> None:
    first, *runs = _lines(report)
    whole = schema()
    for document, kind in [(first, "first_line"), *((run, "line") for run in runs)]:
        resolved = whole | {"$ref": f"#/$defs/{kind}", "$id": "urn:report"}
        properties = {name: rule for name, rule in whole["properties"].items() if name not in ("runs",)}
        jsonschema.validate(document, resolved | {"properties": properties, "required": []})


def test_checks_stand_once_however_many_runs(report: Report) -> None:
    many = Checks(tuple(f"GT{i}" for i in range(100, 180)), (SkippedRule("GT401", "no per-layer norms"),))
    runs = tuple(replace(report.runs[i % 4], run=f"sweep/{i}", checks=many) for i in range(5000))
    text = render_jsonl(Report(1, runs), Style())
    assert text.count("GT179") == 1
    assert len(text.splitlines()) == 5001
    assert len(gzip.compress(text.encode(), 1)) < 5e6


def test_no_run_is_one_line() -> None:
    assert _lines(Report(0))[0]["runs"] == 0
