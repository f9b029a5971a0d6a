"""JUnit XML, as Jenkins, GitLab and others read test results: a run is a test case.

Valid against the schema of Jenkins' xUnit plugin, version 10. No times: the same logs give the same file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape as in_text
from xml.sax.saxutils import quoteattr

from gradtrend.model.finding import by_weight
from gradtrend.model.report import Report, RunReport
from gradtrend.report.ci.outcomes import (
    Level,
    failure_text,
    group_message,
    grouped,
    is_unjudged,
    level_of,
    level_unjudged,
    title_of,
    told_apart,
)
from gradtrend.report.wording.escape import escape
from gradtrend.report.wording.numbers import share
from gradtrend.report.wording.style import Style

# What no XML 1.0 document may hold, not even as a reference (https://www.w3.org/TR/xml/#charsets).
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class _Case:
    """One test case: `outcome` is failure, error, skipped or passed; `kind` and `message` say why."""

    name: str
    outcome: str = "passed"
    kind: str = ""
    message: str = ""
    details: Sequence[str] = ()
    said: Sequence[str] = ()


def render_junit(report: Report, style: Style) -> str:
    """A failure for a run with findings that count, an error for one that could not be judged or read (skipped where
    `--allow-undetermined` lets it pass), so that a file without either is an exit code of 0; the style plays no part.
    """
    cases = [_case_of(run, report) for run in report.runs]
    cases += [_case_of_failure(failure_text(f), escape(f.path), level_unjudged(report, f)) for f in report.failures]
    outcomes = Counter(case.outcome for case in cases)
    counts = f'tests="{len(cases)}" failures="{outcomes["failure"]}" errors="{outcomes["error"]}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="gradtrend" {counts}>',
        f'  <testsuite name="gradtrend" {counts} skipped="{outcomes["skipped"]}">',
    ]
    names = told_apart([case.name for case in cases])
    for name, case in zip(names, cases, strict=True):
        lines += _element(name, case)
    return "\n".join([*lines, "  </testsuite>", "</testsuites>", ""])


def _case_of(run: RunReport, report: Report) -> _Case:
    groups = grouped(run, report)
    failing = [group for group in groups if level_of(group[0], report) is Level.ERROR]
    rest = [group for group in groups if group not in failing]
    sure = "" if run.confidence is None else f" (confidence {share(run.confidence)})"
    said = [f"{run.verdict}{sure}", *(f"{_head(g[0].rule, g[0].name)}: {group_message(g, run)}" for g in rest)]
    details = [f"{_head(g[0].rule, g[0].name)}: {group_message(g, run)}" for g in failing]
    details += [f"Next: {escape(advice.text)}" for advice in run.next]
    if failing:
        top = failing[0][0]
        message = f"{run.verdict}: {group_message(failing[0], run)}"
        return _Case(title_of(run), "failure", escape(top.rule), message, details, said)
    if is_unjudged(run):
        why = next((escape(finding.message) for finding in by_weight(run.findings)), "too little is logged")
        outcome = "error" if level_unjudged(report) is Level.ERROR else "skipped"
        return _Case(title_of(run), outcome, "undetermined", f"could not be judged: {why}", details, said)
    return _Case(title_of(run), said=said)


def _case_of_failure(text: str, path: str, level: Level) -> _Case:
    outcome = "error" if level is Level.ERROR else "skipped"
    return _Case(path, outcome, "unreadable", f"could not be read: {text}")


def _head(rule: str, name: str) -> str:
    return escape(f"{rule} {name}")


def _element(name: str, case: _Case) -> list[str]:
    lines = [f'    <testcase classname="gradtrend" name={_attribute(name)}>']
    if case.outcome != "passed":
        start = f"      <{case.outcome} type={_attribute(case.kind)} message={_attribute(case.message)}"
        lines.append(f"{start}>{_text(case.details)}</{case.outcome}>" if case.details else f"{start}/>")
    if case.said:
        lines.append(f"      <system-out>{_text(case.said)}</system-out>")
    return [*lines, "    </testcase>"]


def _attribute(text: str) -> str:
    return quoteattr(_NO_XML.sub("\ufffd", text))


def _text(lines: Sequence[str]) -> str:
    return in_text(_NO_XML.sub("\ufffd", "\n".join(lines)))
