from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradtrend.model.report import Anchor, Policy, Report, RunReport
from gradtrend.report.ci.gitlab import render_gitlab
from gradtrend.report.wording.style import Style
from tests.report.ci.fitting import fits_gitlab
from tests.report.ci.made import HOSTILE, hostile, many


def entries(report: Report) -> Any:
    return fits_gitlab(render_gitlab(report, Style()))


def test_what_fails_is_a_blocker_and_nothing_else(report: Report) -> None:
    found = [(one["check_name"], one["severity"]) for one in entries(report)]
    assert found[:2] == [("GT101 exploding", "blocker"), ("GT502 stale", "info")]
    assert found[-4:] == [
        ("GT504 too-short", "minor"),
        ("undetermined", "blocker"),
        ("unreadable", "blocker"),
        ("unreadable", "blocker"),
    ]


def test_severities_follow_the_policy(report: Report) -> None:
    allowed = replace(report, policy=Policy(None, allow_undetermined=True), failures=report.failures[:1])
    found = {one["check_name"]: one["severity"] for one in entries(allowed)}
    assert found["GT101 exploding"] == "critical"
    assert found["undetermined"] == found["unreadable"] == "minor"


def test_a_known_finding_is_an_info(exploding: RunReport) -> None:
    known = replace(exploding, findings=tuple(replace(finding, known=True) for finding in exploding.findings))
    assert {one["severity"] for one in entries(Report(0, (known,)))} == {"info"}


def test_places(exploding: RunReport) -> None:
    def place(run: RunReport, **of_report: Any) -> tuple[str, int]:
        location = entries(Report(1, (run,), **of_report))[0]["location"]
        return location["path"], location["lines"]["begin"]

    inside = replace(exploding, folder=Path("out/run"))
    outside = replace(exploding, run="/data/out/run", folder=Path("/data/out/run"))
    assert place(inside, folder="/project") == ("out/run/metrics.jsonl", 1)
    assert place(outside, folder="/project") == ("out/run", 1)
    assert place(outside, folder="/project", anchor=Anchor("train.yaml", 4)) == ("train.yaml", 4)


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names(name: str) -> None:
    render_gitlab(hostile(name), Style()).encode("ascii")
    found = entries(hostile(name))
    json.dumps(found, ensure_ascii=False).encode("utf-8")  # no lone surrogates
    assert all("\n" not in one["description"] for one in found)


def test_twelve_runs_and_none() -> None:
    assert len(entries(many(12))) == 36
    assert entries(Report(0)) == []
