from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from gradtrend.model.finding import Finding
from gradtrend.model.report import Failure, Policy, Report, RunReport
from gradtrend.model.words import Severity, Verdict
from gradtrend.report.ci.junit import render_junit
from gradtrend.report.wording.style import Style
from tests.report.ci.fitting import fits_junit
from tests.report.ci.made import HOSTILE, hostile, many


def cases(report: Report) -> list[ElementTree.Element]:
    """The test cases of a report, which fits the schema of Jenkins and counts right."""
    text = render_junit(report, Style())
    fits_junit(text)
    suites = ElementTree.fromstring(text.encode("utf-8"))
    found = list(suites.iter("testcase"))
    for element in (suites, suites[0]):
        assert element.attrib["tests"] == str(len(found))
        assert element.attrib["failures"] == str(sum(case.find("failure") is not None for case in found))
        assert element.attrib["errors"] == str(sum(case.find("error") is not None for case in found))
    return found


def outcomes(elements: Iterable[ElementTree.Element]) -> dict[str, str]:
    kinds = ("failure", "error", "skipped")
    return {
        case.attrib["name"]: next((kind for kind in kinds if case.find(kind) is not None), "passed")
        for case in elements
    }


def test_a_run_is_a_test_case(report: Report) -> None:
    assert outcomes(cases(report)) == {
        "out/run": "failure",
        "runs/ok": "passed",
        "runs/layers": "failure",
        "runs/short": "error",
        "out/other": "error",
        "out/bug": "error",
    }


def test_only_what_counts_is_a_failure(report: Report) -> None:
    only_layers = replace(report, policy=Policy(None, frozenset({"GT401"})))
    found = outcomes(cases(only_layers))
    assert found["runs/layers"] == "failure"
    assert found["out/run"] == "passed"


def test_a_known_finding_is_no_failure(exploding: RunReport) -> None:
    known = replace(exploding, findings=tuple(replace(finding, known=True) for finding in exploding.findings))
    (case,) = cases(Report(0, (known,)))
    assert outcomes([case]) == {"out/run": "passed"}
    assert "[known]" in case.findtext("system-out", "")


def test_what_may_be_undetermined_is_skipped_but_for_a_bug(report: Report) -> None:
    found = outcomes(cases(replace(report, policy=Policy(allow_undetermined=True))))
    assert (found["runs/short"], found["out/other"], found["out/bug"]) == ("skipped", "skipped", "error")


def test_a_failure_says_what_where_and_what_to_do(report: Report) -> None:
    failure = cases(report)[0].find("failure")
    assert failure is not None
    assert failure.attrib["type"] == "GT101"
    assert failure.attrib["message"] == "exploding: The gradient norm climbs from 0.9 to 3.2e5. (steps 371 to 397)"
    assert "Next: Lower the learning rate." in (failure.text or "")


def test_layers_of_one_rule_are_told_once(layered: RunReport) -> None:
    (case,) = cases(Report(1, (layered,)))
    assert "(8 more findings of this rule)" in case.findtext("failure", "")


def test_equal_names_are_told_apart() -> None:
    """A reader takes two test cases of one name for one."""
    runs = [RunReport("a", Verdict.STABLE, 0.9), RunReport("a", Verdict.STABLE, 0.9)]
    assert [case.attrib["name"] for case in cases(Report(0, tuple(runs)))] == ["a", "a (2)"]


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names(name: str) -> None:
    found = cases(hostile(name))
    assert [*outcomes(found).values()] == ["failure", "error", "passed", "error"]
    for case in found:
        assert "\n" not in case.attrib["name"]
        assert {element.tag for element in case} <= {"failure", "error", "system-out"}


def test_twelve_runs() -> None:
    assert len(cases(many(12))) == 12


def test_nothing_at_all() -> None:
    assert cases(Report(0)) == []


def test_each_severity_that_fails_is_a_failure() -> None:
    for severity in Severity:
        run = RunReport("a", Verdict.STABLE, 0.9, findings=(Finding("GT1", "x", severity, 1.0, "m"),))
        found = outcomes(cases(Report(1, (run,), policy=Policy(severity))))
        assert found == {"a": "failure"}


def test_a_path_that_could_not_be_read_says_why() -> None:
    (case,) = cases(Report(3, (), (Failure("a", "a: no such file", "Look again."),)))
    error = case.find("error")
    assert error is not None
    assert error.attrib["message"] == "could not be read: no such file Look again."
