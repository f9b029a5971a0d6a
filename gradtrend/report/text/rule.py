"""Rules for a person and for a program."""

from __future__ import annotations

from collections.abc import Sequence

from gradtrend.model.rule import EVIDENCE, Action, Condition, Hold, Rule, Scope, Shows
from gradtrend.report.text.lines import severity_word, wrapped
from gradtrend.report.wording.escape import escape
from gradtrend.report.wording.numbers import number
from gradtrend.report.wording.style import Style


def rule_table(rules: Sequence[Rule], style: Style) -> str:
    """One line a rule: id, name, severity, summary."""
    names = {rule.id: escape(rule.name) for rule in rules}
    column = max(map(len, names.values()), default=0)
    lines = []
    for rule in rules:
        severity = severity_word(rule.severity, style, 7)
        title = f"{style.paint(escape(rule.id), 'bold')}  {names[rule.id]:<{column}}"
        lines.append(f"{title}  {severity}  {escape(rule.summary)}")
    return "".join(f"{line}\n" for line in lines)


def rule_page(rule: Rule, style: Style) -> str:
    """Everything about one rule: meaning, limits and their reasons, blind spots, actions."""
    severity = severity_word(rule.severity, style)
    title = style.paint(escape(f"{rule.id} {rule.name}"), "bold")
    lines = [f"{title} ({severity})", "", *wrapped(_one_line(rule.summary), style, "", "")]
    parts = (
        ("What it means", _paragraphs(rule.help, style)),
        ("Applies to", wrapped(_target(rule), style)),
        ("Shows only in logs", _shows(rule.shows, style)),
        ("Fires when", _conditions(rule, style)),
        ("Silenced by", wrapped(", ".join(rule.unless), style)),
        ("Does not see", _paragraphs(rule.blind, style)),
        ("Known from", [f"  {escape(thread)}" for thread in rule.threads]),
        (
            "Next actions, what stands in braces filled in from the run",
            [line for action in rule.actions for line in _action(action, style)],
        ),
    )
    for heading, part in parts:
        if part:
            lines += ["", style.paint(heading, "bold"), *part]
    return "".join(f"{line}\n" for line in lines)


def _one_line(text: str) -> str:
    """A text of a rule's file, which may break it into lines where it likes."""
    return text.replace("\n", " ")


def _paragraphs(text: str, style: Style) -> list[str]:
    return [line for paragraph in text.strip().split("\n\n") for line in wrapped(_one_line(paragraph), style)]


def _target(rule: Rule) -> str:
    if rule.replay is not None:
        return f"a replayed step: {rule.replay}"
    if rule.note:
        return f"what was noticed while reading: {_one_line(rule.note)}"
    if rule.scope is Scope.ONCE:
        return "the run as a whole"
    where = "each layer" if rule.scope is Scope.LAYER else "the run's total"
    return f"{rule.role} series, {where}"


def _shows(shows: Shows, style: Style) -> list[str]:
    """Of which frameworks, with which signs and metrics; nothing where it may show in any log."""
    who = " or ".join([*shows.frameworks, *(f"frameworks of the kind {kind}" for kind in shows.kinds)])
    signs = " or ".join(shows.signs)
    metrics = " or ".join(shows.metrics)
    parts = [f"of {who}"] if who else []
    parts += [f"whose lines speak of {signs}"] if signs else []
    parts += [f"with a metric like {metrics}"] if metrics else []
    return wrapped(", ".join(parts), style) if parts else []


def _conditions(rule: Rule, style: Style) -> list[str]:
    """The conditions that must all hold, then the alternatives of which one must hold as a whole."""
    lines = [line for condition in rule.when for line in _condition(condition, style)]
    if (held := _hold(rule.hold)) is not None:
        lines += wrapped(f"the change holds to the end, for {held}", style, "  - ", "    ")
    for place, alternative in enumerate(rule.alternatives):
        lines.append(f'  {"or" if place else "and"} all of "{escape(alternative.name)}":')
        lines += [line for condition in alternative.when for line in _condition(condition, style)]
    return lines


def _condition(condition: Condition, style: Style) -> list[str]:
    side = "above" if condition.above is not None else "below"
    measure = condition.measure.replace("_", " ") + (f" ({condition.meaning})" if condition.meaning else "")
    limit = wrapped(f"{measure} is {side} {number(condition.limit)}", style, "  - ", "    ")
    why = wrapped(f"why: {_one_line(condition.why)}", style, "    ", "    ")
    return limit + [style.paint(line, "dim") for line in why]


def _hold(hold: Hold) -> str | None:
    if hold.points is not None:
        return f"at least {hold.points} points"
    return None if hold.fraction is None else f"at least {hold.fraction * 100:g} % of the points"


def _action(action: Action, style: Style) -> list[str]:
    name = f"{action.id}: " if action.id else ""
    return wrapped(name + _one_line(action.text) + _reason(action.when), style, "  - ", "    ")


def _reason(when: str | None) -> str:
    """When an action is given at all; evidence puts it first as well."""
    if when is None:
        return ""
    return f" [only when: {when.replace('_', ' ')}{'; then first' if when in EVIDENCE else ''}]"
