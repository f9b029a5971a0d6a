from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradtrend.detect.rules import load_rules
from gradtrend.model.report import Anchor, Policy, Report, RunReport
from gradtrend.report.ci.sarif import render_sarif
from gradtrend.report.wording.style import Style
from tests.report.ci.fitting import fits_sarif
from tests.report.ci.made import HOSTILE, hostile, many


def sarif(report: Report) -> Any:
    """The SARIF run of a report, which fits the schema of the standard."""
    (run,) = fits_sarif(render_sarif(report, Style()))["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    return run


def test_a_finding_is_a_result(report: Report) -> None:
    found = [(one["ruleId"], one["level"], one["properties"]["fails"]) for one in sarif(report)["results"]]
    assert found[:2] == [("GT101", "error", True), ("GT502", "note", False)]
    assert found.count(("GT401", "error", True)) == 9
    assert found[-1] == ("GT504", "warning", False)


def test_what_fails_follows_the_policy(report: Report) -> None:
    results = sarif(replace(report, policy=Policy(None, frozenset({"GT502"}))))["results"]
    assert {one["ruleId"] for one in results if one["properties"]["fails"]} == {"GT502"}


def test_a_rule_has_its_help(report: Report) -> None:
    rules = sarif(replace(report, rules=load_rules()))["tool"]["driver"]["rules"]
    exploding = next(rule for rule in rules if rule["id"] == "GT101")
    assert exploding["shortDescription"]["text"].startswith("The gradient norm climbs")
    assert "What it does not see: A rise of less than a decade" in exploding["help"]["text"]
    assert exploding["defaultConfiguration"]["level"] == "error"
    assert [rule["id"] for rule in rules] == ["GT101", "GT401", "GT502", "GT504"]


def test_what_could_not_be_judged_or_read_is_told(report: Report) -> None:
    (invocation,) = sarif(report)["invocations"]
    told = [(one["level"], one["message"]["text"]) for one in invocation["toolExecutionNotifications"]]
    assert told[0] == ("error", "runs/short: could not be judged")
    assert told[1] == ("error", "out/other: no such path Check the spelling.")
    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (1, False)


def place(run: RunReport, **of_report: Any) -> Any:
    (location,) = sarif(Report(1, (run,), **of_report))["results"][0]["locations"]
    return location


def test_a_log_below_the_working_folder_is_the_place(exploding: RunReport) -> None:
    inside = replace(exploding, run="/project/out/run", folder=Path("/project/out/run"))
    found = place(inside, folder="/project")
    assert found["physicalLocation"]["artifactLocation"]["uri"] == "out/run/metrics.jsonl"
    assert found["logicalLocations"][0]["fullyQualifiedName"] == "out/run/gradient_norm"


def test_a_log_elsewhere_is_a_name_alone(exploding: RunReport) -> None:
    outside = replace(exploding, run="/data/user/out/run", folder=Path("/data/user/out/run"))
    assert "physicalLocation" not in place(outside, folder="/project")


def test_an_anchor_is_the_place(exploding: RunReport) -> None:
    found = place(exploding, folder="/project", anchor=Anchor("conf/träin 1.yaml", 7))
    assert found["physicalLocation"]["artifactLocation"]["uri"] == "conf/tr%C3%A4in%201.yaml"
    assert found["physicalLocation"]["region"] == {"startLine": 7}


def test_a_fingerprint_is_the_same_wherever_a_project_lies(exploding: RunReport) -> None:
    def fingerprints(run: str, folder: str) -> list[str]:
        results = sarif(Report(1, (replace(exploding, run=run),), folder=folder))["results"]
        return [one["partialFingerprints"]["primaryLocationLineHash"] for one in results]

    here = fingerprints("out/run", "/home/me/project")
    assert here == fingerprints("/builds/7/project/out/run/", "/builds/7/project")
    assert here == fingerprints("./out/../out/run", "/builds/7/project")
    assert len(set(here)) == len(here)
    assert here != fingerprints("out/run2", "/home/me/project")


def test_no_absolute_path_is_told_of_a_run_elsewhere(exploding: RunReport) -> None:
    outside = replace(exploding, run="/data/secret/out/run", folder=Path("/data/secret/out/run"))
    (first, *_) = sarif(Report(1, (outside,), folder="/project"))["results"]
    assert "/data/secret" not in json.dumps([first["locations"], first["partialFingerprints"], first["properties"]])


def test_findings_that_are_alike_have_fingerprints_of_their_own(exploding: RunReport) -> None:
    twice = replace(exploding, findings=exploding.findings[1:] * 2)
    marks = [one["partialFingerprints"]["gradtrend/v1"] for one in sarif(Report(1, (twice,)))["results"]]
    assert len(set(marks)) == 2


def test_a_known_finding_is_suppressed(exploding: RunReport) -> None:
    known = replace(exploding, findings=tuple(replace(finding, known=True) for finding in exploding.findings))
    results = sarif(Report(0, (known,)))["results"]
    assert all(one["suppressions"] and not one["properties"]["fails"] for one in results)


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names(name: str) -> None:
    text = render_sarif(hostile(name), Style())
    text.encode("ascii")
    json.dumps(sarif(hostile(name)), ensure_ascii=False).encode("utf-8")  # no lone surrogates


def test_twelve_runs_and_none() -> None:
    assert len(sarif(many(12))["results"]) == 36
    assert sarif(Report(0))["results"] == []
