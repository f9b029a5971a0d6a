"""Why and Next: the findings of a run as text, those of one rule together."""

from __future__ import annotations

from collections.abc import Sequence

from gradtrend.model.finding import Finding
from gradtrend.model.report import RunReport
from gradtrend.model.words import Severity
from gradtrend.report.text.lines import listed, severity_word, wrapped
from gradtrend.report.wording.escape import escape
from gradtrend.report.wording.nonfinite import may_be_scaled, nonfinite_text
from gradtrend.report.wording.numbers import counted_in, number, plural, share, steps
from gradtrend.report.wording.style import Style
from gradtrend.report.wording.subject import debug_texts, distinct, grouped, known_of, messages

# One screen: what does not fit is counted, and stands in the JSON report.
_MAX_GROUPS = 6
_MAX_ACTIONS = 3
_MAX_ACTIONS_VERBOSE = 5
_MAX_EVIDENCE = 4


def why_lines(run: RunReport, style: Style) -> list[str]:
    """The findings, weightiest first, then how NaN/inf are tied to the loss, then evidence under `debug/`."""
    groups = grouped(run)
    lines = [line for group in groups[:_MAX_GROUPS] for line in _group_lines(group, style, counted_in(run))]
    if len(groups) > _MAX_GROUPS:
        left = sum(len(group) for group in groups[_MAX_GROUPS:])
        lines.append(f"  and {plural(left, 'more finding')}, listed by --format json")
    if run.nonfinite is not None:
        lines += wrapped(nonfinite_text(run.nonfinite, counted_in(run), may_be_scaled(run)), style)
    for text in debug_texts(run):
        lines += wrapped(text, style)
    return lines


def next_lines(run: RunReport, style: Style) -> list[str]:
    """The first next actions, numbered; a single one as it is."""
    most = _MAX_ACTIONS_VERBOSE if style.verbose else _MAX_ACTIONS
    if len(run.next) == 1:
        return wrapped(run.next[0].text, style)
    lines = []
    for place, advice in enumerate(run.next[:most], start=1):
        lines += wrapped(advice.text, style, first=f"  {place}. ", rest="     ")
    return lines


def _group_lines(group: Sequence[Finding], style: Style, unit: str) -> list[str]:
    top = group[0]
    title = escape(f"{top.rule} {top.name}")
    head, painted = (
        f"  {severity} {name}"
        for severity, name in (
            (f"{top.severity:<7}", title),
            (severity_word(top.severity, style, 7), style.paint(title, "bold")),
        )
    )
    first, *rest = wrapped(f"{head.lstrip()}{_subject(group, style, unit)}{known_of(group)}", style, "  ", "    ")
    lines = [painted + first.removeprefix(head) if first.startswith(head) else first, *rest]
    for message in messages(group):
        lines += wrapped(message, style, "    ", "    ")
    if style.verbose and top.severity is not Severity.INFO:
        lines += [style.paint(line, "dim") for line in _evidence_lines(top, style)]
    return lines


def _subject(group: Sequence[Finding], style: Style, unit: str) -> str:
    """What a group is about: the steps of one finding (with its confidence, where asked for), else its layers, metrics
    or steps.
    """
    top = group[0]
    if len(group) == 1:
        where = steps(top.first_step, top.last_step, unit)
        sure = f" (confidence {share(top.confidence)})" if style.verbose else ""
        return (f", {where}" if where else "") + sure
    for kind, names in (
        ("layer", distinct(f.layer for f in group)),
        ("series", distinct(f.metric for f in group)),
    ):
        if len(names) > 1:
            return f": {plural(len(names), kind, kind.rstrip('s') + 's')}: {listed(names, style)}"
    places = distinct(steps(f.first_step, f.last_step, unit) for f in group)
    return f": {len(group)} times" + (f": {listed(places, style)}" if places else "")


def _evidence_lines(finding: Finding, style: Style) -> list[str]:
    parts = [
        f"{evidence.measure.replace('_', ' ')} {number(evidence.observed)}"
        + ("" if evidence.limit is None else f" (limit {number(evidence.limit)})")
        for evidence in finding.evidence
        if evidence.observed is not None
    ]
    return wrapped("measured: " + ", ".join(parts[:_MAX_EVIDENCE]), style, "    ", "    ") if parts else []
