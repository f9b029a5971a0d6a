"""Markdown for a comment or a job's summary: a table of the runs, worst first, and what was found, folded."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradtrend.model.report import Report, RunReport
from gradtrend.report.ci.outcomes import (
    Level,
    counted,
    failure_text,
    group_message,
    grouped,
    is_unjudged,
    level_of,
    level_unjudged,
    title_of,
    worst_first,
)
from gradtrend.report.wording.escape import escape, shorten
from gradtrend.report.wording.numbers import plural, share
from gradtrend.report.wording.style import Style

LARGEST = 60_000  # characters: a comment on GitHub takes 65,536
_MOST_ROWS = 50  # runs in the table: more are read elsewhere
_MOST_GROUPS = 10
_MOST_ACTIONS = 3
_NAME = 120  # characters of a run's name
_WHY = 160
_MESSAGE = 600
_MARKS = {Level.ERROR: "❌", Level.WARNING: "⚠️", Level.NOTICE: "✅"}
# Punctuation that could begin something in Markdown or HTML: an underscore within a word does not, and a colon before a
# space belongs to no address. "www." alone begins a link.
_MARKUP = r"[\\`*\[\]<>|~&$]|(?<![^\W_])_|_(?![^\W_])|:(?! )|(?<=www)\."
# "@name" calls somebody and "#1" names an issue, however they are written, but not around a space of no width.
_CALL = r"[@#](?=\S)"
_SPECIAL = re.compile(f"{_MARKUP}|{_CALL}", re.IGNORECASE)


def render_markdown(report: Report, style: Style) -> str:
    """At most `LARGEST` characters; the style plays no part."""
    runs = worst_first(report)
    head = [f"### gradtrend: {'failed' if _fails(report) else 'passed'}", "", counted(report), ""]
    lines = [*head, *_table(runs, report), *_failures(report)]
    size = sum(len(line) + 1 for line in lines)
    folded = [block for run in runs if (block := _details(run, report))]
    for place, block in enumerate(folded):
        size += sum(len(line) + 1 for line in block)
        if size > LARGEST - 200:  # for the line that says so
            lines += ["", f"Details of {plural(len(folded) - place, 'more run')} are left out."]
            break
        lines += block
    return "\n".join([*lines, ""])


def _fails(report: Report) -> bool:
    """Whether the call would not exit with 0 (but for `--exit-zero`)."""
    unread = any(level_unjudged(report, failure) is Level.ERROR for failure in report.failures)
    return unread or any(report.policy.blames(run) for run in report.runs)


def _table(runs: Sequence[RunReport], report: Report) -> list[str]:
    if not runs:
        return []
    lines = ["| | run | verdict | confidence | why |", "|---|---|---|---|---|"]
    for run in runs[:_MOST_ROWS]:
        sure = "" if run.confidence is None else share(run.confidence)
        groups = grouped(run, report)
        why = prose(group_message(groups[0], run), _WHY) if groups else ""
        lines.append(f"| {_MARKS[_level(run, report)]} | {code(title_of(run))} | {run.verdict} | {sure} | {why} |")
    if len(runs) > _MOST_ROWS:
        lines.append(f"| | and {plural(len(runs) - _MOST_ROWS, 'more run')} | | | |")
    return lines


def _level(run: RunReport, report: Report) -> Level:
    if report.policy.blames(run):
        return Level.ERROR
    if is_unjudged(run) or any(finding.known for finding in run.findings):
        return Level.WARNING
    return max((level_of(finding, report) for finding in run.findings), default=Level.NOTICE)


def _failures(report: Report) -> list[str]:
    if not report.failures:
        return []
    shown = report.failures[:_MOST_ROWS]
    lines = ["", "Could not be read:", ""]
    lines += [f"- {code(escape(failure.path))}: {prose(failure_text(failure), _MESSAGE)}" for failure in shown]
    left = len(report.failures) - len(shown)
    return [*lines, f"- and {plural(left, 'more path')}"] if left else lines


def _details(run: RunReport, report: Report) -> list[str]:
    """What was found in a run and what to do, folded; nothing for a run of which there is nothing to say."""
    groups = grouped(run, report)
    if not groups:
        return []
    lines = ["", f"<details><summary>{code(title_of(run))}: {run.verdict}</summary>", ""]
    for group in groups[:_MOST_GROUPS]:
        top = group[0]
        rule = prose(escape(f"{top.rule} {top.name}"), _NAME)
        what = f"**{rule}** ({top.severity})"
        lines.append(f"- {what}: {prose(group_message(group, run), _MESSAGE)}")
    if len(groups) > _MOST_GROUPS:
        lines.append(f"- and findings of {plural(len(groups) - _MOST_GROUPS, 'more rule')}")
    if run.next:
        lines += ["", "Next:", ""]
        lines += [
            f"{place}. {prose(escape(advice.text), _MESSAGE)}"
            for place, advice in enumerate(run.next[:_MOST_ACTIONS], start=1)
        ]
    return [*lines, "", "</details>"]


def prose(text: str, limit: int) -> str:
    """A text, escaped for terminals already, that is nothing but text in Markdown and HTML."""
    return _SPECIAL.sub(_reference, shorten(text, limit))


def code(text: str) -> str:
    """The name of a run as code; in a table too, where a code span could not hold a bar."""
    return f"<code>{prose(text, _NAME)}</code>"


def _reference(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};{'&#8203;' if found[0] in '@#' else ''}"
