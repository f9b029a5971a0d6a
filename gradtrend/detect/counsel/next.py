"""The one ordered list of next actions of a run: known causes first, then its situation, then what else was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradtrend.detect.counsel.facts import Facts
from gradtrend.detect.counsel.grounds import denied
from gradtrend.detect.counsel.phrases import PHRASES
from gradtrend.detect.counsel.situations import situation_of
from gradtrend.detect.counsel.so_far import look_of
from gradtrend.detect.curves.failure import failed_at, rise_began, rows_before_failure
from gradtrend.detect.curves.levels import median
from gradtrend.detect.curves.series import Series
from gradtrend.detect.rules.template import fill, show, template_values
from gradtrend.model.advice import LOGGING_IDS, Advice
from gradtrend.model.finding import Finding, by_weight
from gradtrend.model.words import Severity, Verdict

_MOST = 8
_FIRST = 3  # of which at most one may depend on what happens next
_KNOWN = "GT7"


def next_actions(facts: Facts) -> tuple[Advice, ...]:
    """What to do next, best first; the texts are those of the findings where one words the action."""
    findings = _ranked(facts)
    known = [action for finding in findings if finding.rule.startswith(_KNOWN) for action in finding.action_ids]
    situation = situation_of(facts)
    serious = [f for f in findings if f.severity is not Severity.INFO]
    found = [action for finding in serious for action in finding.action_ids]
    ids = _once([*known, *(situation.actions if situation else ()), *_logging_last(found)])
    if not ids:  # mere notes are worth an action where there is nothing else to do
        ids = _once([action for finding in findings for action in finding.action_ids])
    not_here = denied(facts, ids, frozenset(known))
    said = {} if situation is None else situation.texts
    advice = [_advice(a, facts, findings, said) for a in ids if a not in not_here and a is not None]
    own = [
        Advice(None, text, (f.rule,))
        for f in findings
        for i, text in zip(f.action_ids, f.actions, strict=True)
        if i is None
    ]
    return tuple(_one_condition([one for one in (*advice, *own) if one is not None])[:_MOST])


def _ranked(facts: Facts) -> list[Finding]:
    """The findings: known causes, those that gave the verdict, then by weight."""
    verdict = facts.verdict.value
    return sorted(
        by_weight(facts.findings),
        key=lambda f: (not f.rule.startswith(_KNOWN), f.name not in (verdict, f"{verdict}-layer")),
    )


def _logging_last(ids: Sequence[str | None]) -> list[str | None]:
    """What to change comes before what to log."""
    return sorted(ids, key=lambda action: action in LOGGING_IDS)


def _once(ids: Sequence[str | None]) -> list[str | None]:
    return list(dict.fromkeys(ids))


def _advice(action: str, facts: Facts, findings: Sequence[Finding], said: Mapping[str, Sequence[str]]) -> Advice | None:
    # That a note on the log needs nothing says nothing of the run.
    speak = [f for f in findings if action != "nothing-to-do" or not f.rule.startswith("GT5")]
    worded = [(f.rule, text) for f in speak for i, text in zip(f.action_ids, f.actions, strict=True) if i == action]
    text = worded[0][1] if worded else _phrase([*said.get(action, ()), *PHRASES.get(action, ())], facts)
    if text is None:
        return None
    rules = tuple(dict.fromkeys(rule for rule, _ in worded))
    return Advice(action, _with_option(action, text, facts), rules, text.startswith("If "))


def _phrase(templates: Sequence[str], facts: Facts) -> str | None:
    """The first of the templates that the run can fill."""
    values = _values(facts)
    return next((text for one in templates if (text := fill(one, values)) is not None), None)


def _values(facts: Facts) -> dict[str, object]:
    run = facts.run
    norm = run.norms[0] if run.norms else None
    level = None if norm is None or facts.failed else usual_level(norm, facts.left_at)
    values = template_values(run.curve(norm))
    at, rows = failed_at(run), rows_before_failure(run)
    return values | {
        "a_third": _a_third(facts, values["lr_peak"]),
        "finite_rows": None if at is None or not rows else f"{rows} finite row{'s' if rows > 1 else ''}",
        # A log without steps counts rows, of which nobody knows how many steps lie before the first.
        "first_bad_step": at if at is not None and at > 1 and not rows and values["counted"] == "step" else None,
        "so_far": look_of(facts).text,
        "yet": " so far" if facts.verdict is Verdict.UNDETERMINED else "",
        "typical": level,
        "failed_at": at,
        "began": rise_began(run) if facts.failed else None,
        "lr_climbing": facts.lr_climbing,
    }


def _a_third(facts: Facts, highest: object) -> str:
    """A third of what: while the rate climbs its highest value is not the one that the config holds."""
    if (rate := facts.lr_below_target) is not None:
        return f"try a third of its target (it was still climbing, at {show(rate)})"
    return "try a third of it" if highest is None else f"try a third of {show(highest)}, the highest so far"


def usual_level(norm: Series, before: int | None) -> float | None:
    """The median of the positive values of a norm, of those before a step where one is given: what a run that has gone
    wrong logs is not what is usual. None without such a value.
    """
    values = norm.finite_values if before is None else norm.finite_values[norm.steps[norm.finite] < before]
    positive = values[values > 0]
    return median(positive) if len(positive) else None


def _with_option(action: str, text: str, facts: Facts) -> str:
    """The text with the option by which the run's framework takes the action, where the text does not have it."""
    option = facts.framework.options.get(action)
    if option is None or option.split("=")[0].split("(")[0] in text:
        return text
    return f"{text.rstrip('.')} ({facts.framework.title}: {option})."


def _one_condition(advice: Sequence[Advice]) -> list[Advice]:
    """The list with at most one conditional action among its first; the others come after them, or not at all where
    there are no more than that.
    """
    first: list[Advice] = []
    later: list[Advice] = []
    for one in advice:
        full = len(first) == _FIRST or (one.conditional and any(before.conditional for before in first))
        (later if full else first).append(one)
    return [*first, *(one for one in later if len(first) == _FIRST)]
