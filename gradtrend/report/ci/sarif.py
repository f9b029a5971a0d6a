"""SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/), as GitHub's code scanning and editors read it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from gradtrend.model.finding import Finding, by_weight
from gradtrend.model.identity import fingerprint
from gradtrend.model.report import Report, RunReport
from gradtrend.model.rule import Rule
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
from gradtrend.version import __version__

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
# The number grows when what goes into it changes. GitHub knows the other one alone, and where it is missing makes it of
# the line that is pointed at, which many runs share.
_FINGERPRINTS = ("gradtrend/v1", "primaryLocationLineHash")
_NO_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # surrogates that stand for no byte of a file's name
Json = dict[str, Any]


def render_sarif(report: Report, style: Style) -> str:
    """One SARIF run with a result a finding, at the anchor or the log, and a notification a run that could not be
    judged or a path that could not be read. A known finding is suppressed; the property `fails` says which findings
    count; the style plays no part.
    """
    results = [(run, finding) for run in report.runs for finding in by_weight(run.findings)]
    rules = _rules(report, [finding for _, finding in results])
    places = {rule["id"]: place for place, rule in enumerate(rules)}
    driver = {"name": "gradtrend", "version": __version__, "semanticVersion": __version__, "rules": rules}
    seen: Counter[str] = Counter()
    run = {
        "tool": {"driver": driver},
        "invocations": [_invocation(report)],
        "columnKind": "unicodeCodePoints",
        "results": [_result(run, finding, report, places, seen) for run, finding in results],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, allow_nan=False) + "\n"


def _rules(report: Report, findings: Sequence[Finding]) -> list[Json]:
    """The rules that fired, in order of id."""
    known = {rule.id: rule for rule in report.rules}
    fired = {finding.rule: finding for finding in findings}
    return [_rule(fired[rule_id], known.get(rule_id)) for rule_id in sorted(fired)]


def _rule(finding: Finding, rule: Rule | None) -> Json:
    made: Json = {"id": escape(finding.rule), "name": escape(finding.name)}
    made["defaultConfiguration"] = {"level": _LEVELS[rule.severity if rule else finding.severity]}
    if rule is None:
        return made
    made["shortDescription"] = {"text": _line(rule.summary)}
    parts = [rule.help, f"What it does not see: {rule.blind}" if rule.blind else ""]
    help_text = "\n\n".join(_line(part) for part in parts if part)
    made["fullDescription"] = {"text": _line(rule.help or rule.summary)}
    made["help"] = {"text": help_text or _line(rule.summary)}
    return made


def _result(run: RunReport, finding: Finding, report: Report, places: dict[str, int], seen: Counter[str]) -> Json:
    mark = fingerprint(name_of(run, report), finding)
    seen[mark] += 1
    made: Json = {
        "ruleId": escape(finding.rule),
        "ruleIndex": places[escape(finding.rule)],
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{title_of(run)}: {escape(finding.message)}"},
        "locations": [_location(run, finding, report)],
        "partialFingerprints": dict.fromkeys(_FINGERPRINTS, f"{mark}:{seen[mark]}"),
        "properties": {
            "run": escape(name_of(run, report)),
            "verdict": run.verdict,
            "confidence": finding.confidence,
            "fails": report.policy.fails(finding),
            "firstStep": finding.first_step,
            "lastStep": finding.last_step,
            "actions": [escape(action) for action in finding.actions],
        },
    }
    if finding.known:
        made["suppressions"] = [{"kind": "external", "justification": "listed in the baseline"}]
    return made


def _location(run: RunReport, finding: Finding, report: Report) -> Json:
    parts = [name_of(run, report), *(part for part in (finding.metric,) if part)]
    logical = {"fullyQualifiedName": escape("/".join(parts)), "kind": "resource"}
    place = place_of(run, report)
    found: Json = {"logicalLocations": [logical]}
    return found if place is None else {"physicalLocation": _physical(*place), **found}


def _physical(file: str, line: int | None) -> Json:
    """A place in a file. GitHub shows no result without a line: where none is known it is the first."""
    uri = quote(_NO_BYTE.sub("\ufffd", file).encode("utf-8", "surrogateescape"))
    return {"artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"}, "region": {"startLine": line or 1}}


def _invocation(report: Report) -> Json:
    made: Json = {"executionSuccessful": not report.failures, "exitCode": int(report.exit_code)}
    unjudged = [run for run in report.runs if is_unjudged(run)]
    told = [_notification(level_unjudged(report), f"{title_of(run)}: could not be judged", None) for run in unjudged]
    told += [
        _notification(
            level_unjudged(report, failure),
            f"{escape(failure.path)}: {failure_text(failure)}",
            place_of_failure(failure, report),
        )
        for failure in report.failures
    ]
    return made | ({"toolExecutionNotifications": told} if told else {})


def _notification(level: Level, text: str, place: tuple[str, int | None] | None) -> Json:
    made: Json = {"level": "error" if level is Level.ERROR else "warning", "message": {"text": text}}
    if place is not None:
        made["locations"] = [{"physicalLocation": _physical(*place)}]
    return made


def _line(text: str) -> str:
    return escape(" ".join(text.split()))
