"""GitLab's Code Quality report (https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format)."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from gradtrend.model.finding import Finding, by_weight
from gradtrend.model.identity import digest, fingerprint, stable_name
from gradtrend.model.report import Failure, Report, RunReport
from gradtrend.model.words import Severity
from gradtrend.report.ci.outcomes import (
    Level,
    failure_text,
    is_unjudged,
    level_unjudged,
    name_of,
    place_of,
    place_of_failure,
    title_of,
)
from gradtrend.report.wording.escape import escape
from gradtrend.report.wording.style import Style

# What fails the job is a blocker; of the rest an error could, and an info never should.
_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.INFO: "info"}
Json = dict[str, Any]


def render_gitlab(report: Report, style: Style) -> str:
    """A list with an entry a finding, a run that could not be judged and a path that could not be read. A known finding
    is an info; the style plays no part.
    """
    entries: list[Json] = []
    for run in report.runs:
        entries += [_of_finding(run, finding, report) for finding in by_weight(run.findings)]
        if is_unjudged(run):
            entries.append(_of_unjudged(run, report))
    entries += [_of_failure(failure, report) for failure in report.failures]
    return json.dumps(_told_apart(entries), indent=2, allow_nan=False) + "\n"


def _of_finding(run: RunReport, finding: Finding, report: Report) -> Json:
    severity = "blocker" if report.policy.fails(finding) else _SEVERITIES[finding.severity]
    text = f"{title_of(run)}: {escape(finding.message)}"
    return {
        "description": f"{text} [known]" if finding.known else text,
        "check_name": escape(f"{finding.rule} {finding.name}"),
        "fingerprint": fingerprint(name_of(run, report), finding),
        "severity": "info" if finding.known else severity,
        "location": _location(place_of(run, report), name_of(run, report)),
    }


def _of_unjudged(run: RunReport, report: Report) -> Json:
    name = name_of(run, report)
    return {
        "description": f"{title_of(run)}: could not be judged",
        "check_name": "undetermined",
        "fingerprint": digest((name, "undetermined")),
        "severity": _severity(level_unjudged(report)),
        "location": _location(place_of(run, report), name),
    }


def _of_failure(failure: Failure, report: Report) -> Json:
    name = stable_name(failure.path, report.folder)
    return {
        "description": f"{escape(failure.path)}: {failure_text(failure)}",
        "check_name": "unreadable",
        "fingerprint": digest((name, "unreadable")),
        "severity": _severity(level_unjudged(report, failure)),
        "location": _location(place_of_failure(failure, report), name),
    }


def _severity(level: Level) -> str:
    return "blocker" if level is Level.ERROR else "minor"


def _location(place: tuple[str, int | None] | None, name: str) -> Json:
    """GitLab demands a path and a line: where no file is known the run's name stands for one."""
    file, line = place or (name, None)
    return {"path": escape(file), "lines": {"begin": line or 1}}


def _told_apart(entries: list[Json]) -> list[Json]:
    """The entries, of equal fingerprints the later ones with others: GitLab takes equal ones for one."""
    seen: Counter[str] = Counter()
    for entry in entries:
        mark = entry["fingerprint"]
        seen[mark] += 1
        if seen[mark] > 1:
            entry["fingerprint"] = digest((mark, str(seen[mark])))
    return entries
