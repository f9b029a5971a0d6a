"""Why and Next of a run as markup."""

from __future__ import annotations

from collections.abc import Sequence

from gradtrend.model.finding import Finding
from gradtrend.model.report import RunReport
from gradtrend.model.words import Severity
from gradtrend.report.html.markup import element, prose, text
from gradtrend.report.wording.nonfinite import may_be_scaled, nonfinite_text
from gradtrend.report.wording.numbers import counted_in, number, steps
from gradtrend.report.wording.subject import debug_texts, distinct, grouped, known_of, messages

_MAX_NAMED = 6  # layers or places of one rule; more are counted
_MAX_BRIEF = 3  # findings and actions of a run whose charts are not drawn


def why(run: RunReport, brief: bool = False) -> str:
    """The findings, the rules that gave the verdict first; then NaN and inf, then what lies under `debug/`."""
    groups = grouped(run)
    shown = groups[:_MAX_BRIEF] if brief else groups
    items = [_group(group, counted_in(run)) for group in shown]
    if len(groups) > len(shown):
        left = sum(len(group) for group in groups[len(shown) :])
        items.append(element("li", f"and {left} more", class_="more"))
    if run.nonfinite is not None and (tied := nonfinite_text(run.nonfinite, counted_in(run), may_be_scaled(run))):
        items.append(element("li", text(tied), class_="note"))
    items += [element("li", text(one), class_="note") for one in debug_texts(run)]
    if not items:
        items = [element("li", "Nothing was found.", class_="note")]
    return f"<h3>Why</h3>{element('ul', ''.join(items), class_='findings')}"


def next_steps(run: RunReport, brief: bool = False) -> str:
    """What to do, in order; nothing where there is nothing."""
    shown = run.next[:_MAX_BRIEF] if brief else run.next
    if not shown:
        return ""
    items = "".join(
        element("li", prose(advice.text) + (f" <small>{text(', '.join(advice.rules))}</small>" if advice.rules else ""))
        for advice in shown
    )
    return f"<h3>Next</h3>{element('ol', items, class_='next')}"


def _group(group: Sequence[Finding], unit: str) -> str:
    top = group[0]
    head = f"{element('b', top.severity.value, class_='severity')} {text(top.rule)} {element('span', text(top.name))}"
    head += known_of(group)
    where = _where(group, unit)
    body = "".join(element("p", prose(message)) for message in messages(group))
    body += element("p", text(where), class_="where") if where else ""
    if top.severity is not Severity.INFO and (measured := _measured(top)):
        body += element("p", text(measured), class_="where")
    return element("li", f"<h4>{head}</h4>{body}", class_=top.severity.value)


def _where(group: Sequence[Finding], unit: str) -> str:
    if len(group) == 1:
        return steps(group[0].first_step, group[0].last_step, unit)
    for kind in ("layer", "metric"):
        names = distinct(getattr(finding, kind) for finding in group)
        if len(names) > 1:
            return f"{len(names)} {'layers' if kind == 'layer' else 'series'}: {_listed(names)}"
    places = distinct(steps(f.first_step, f.last_step, unit) for f in group)
    return f"{len(group)} times: {_listed(places)}" if places else f"{len(group)} times"


def _listed(names: Sequence[str]) -> str:
    left = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {left} more" if left > 0 else "")


def _measured(finding: Finding) -> str:
    parts = [
        f"{one.measure.replace('_', ' ')} {number(one.observed)}"
        + ("" if one.limit is None else f" (limit {number(one.limit)})")
        for one in finding.evidence
        if one.observed is not None
    ]
    return f"measured: {', '.join(parts)}" if parts else ""
