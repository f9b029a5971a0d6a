"""A replay's findings: which GT6xx rule holds, in that rule's own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gradtrend.model.finding import Evidence, Finding
from gradtrend.model.replay import Outcome, Replay, ReplayCause
from gradtrend.model.rule import Rule

_BY_CAUSE = {
    ReplayCause.DATA: "GT601",
    ReplayCause.PRECISION_RANGE: "GT602",
    ReplayCause.LOSS_SCALE: "GT603",
    ReplayCause.FORWARD_OPERATOR: "GT604",
    ReplayCause.BACKWARD_OPERATOR: "GT605",
    ReplayCause.BAD_STATE: "GT606",
    ReplayCause.OTHER_RANK: "GT607",
    ReplayCause.EXPLOSION: "GT608",
}
_BY_OUTCOME = {
    Outcome.FLAKY: "GT609",
    Outcome.NOT_REPRODUCED: "GT610",
    Outcome.CANNOT_RUN: "GT611",
}
_SENTENCES = 3  # of the reasons that a message can quote


def with_findings(replay: Replay, rules: Sequence[Rule]) -> Replay:
    """The replay with what it found; `rules` are all rules that are in force."""
    by_id = {rule.id: rule for rule in rules}
    found = [_finding(replay, by_id[rule_id]) for rule_id in _rule_ids(replay) if rule_id in by_id]
    return replace(replay, findings=tuple(found))


def _rule_ids(replay: Replay) -> Iterator[str]:
    if replay.cause is not None:
        yield _BY_CAUSE[replay.cause]
    elif replay.outcome in _BY_OUTCOME:
        yield _BY_OUTCOME[replay.outcome]
    elif replay.inspection.nonfinite:
        yield "GT612"


def _finding(replay: Replay, rule: Rule) -> Finding:
    step = replay.inspection.step
    known = _known(replay)
    actions = [_filled(action.text_for.get(replay.inspection.kind, action.text), known) for action in rule.actions]
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=rule.severity,
        confidence=_confidence(replay),
        message=_filled(rule.message, known) or rule.summary,
        first_step=step,
        last_step=step,
        evidence=tuple(_evidence(replay)),
        actions=tuple(text for text in actions if text is not None),
    )


def _known(replay: Replay) -> dict[str, object]:
    """What a rule's message and actions may speak of; `note` are the reasons of the verdict."""
    values = {
        "note": " ".join(replay.why[:_SENTENCES]),
        "module": replay.origin.module if replay.origin is not None else None,
        "precision": replay.precision,
        "capture": replay.inspection.path,
        "capture_step": replay.inspection.step,
    }
    return {name: value for name, value in values.items() if value not in (None, "")}


def _filled(template: str, known: Mapping[str, object]) -> str | None:
    """The template with what is known; None where it speaks of what a replay does not know."""
    try:
        return template.format(**known)
    except (KeyError, IndexError):
        return None


def _confidence(replay: Replay) -> float:
    """1 where it is certain, less where the cause rests on fewer legs: no operator found, or a precision assumed."""
    if replay.outcome is not Outcome.CONFIRMED:
        return 0.5 if replay.outcome is Outcome.NOT_REPRODUCED else 1.0
    explained = replay.origin is not None or replay.cause in (ReplayCause.OTHER_RANK, ReplayCause.EXPLOSION)
    return (0.99 if explained else 0.8) - (0.0 if replay.precision_known else 0.1)


def _evidence(replay: Replay) -> Iterator[Evidence]:
    if replay.repeats is not None:
        yield Evidence("failed_runs", float(replay.repeats.failures), float(replay.repeats.runs))
    if replay.bad_parameters:
        yield Evidence("bad_parameters", float(len(replay.bad_parameters)))
    if replay.origin is not None and replay.origin.needs is not None:
        yield Evidence("needed_magnitude", replay.origin.needs, replay.origin.type_max)
