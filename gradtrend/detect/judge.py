"""RunLog + rules -> RunReport: the front of this room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from gradtrend.detect.confidence import confidence
from gradtrend.detect.counsel import Facts, next_actions, so_far
from gradtrend.detect.curves.nonfinite import NonFiniteState, cause_of, order_of
from gradtrend.detect.curves.run import Curve, RunCurves, run_curves
from gradtrend.detect.measures import MEASURES
from gradtrend.detect.rules.actions import actions_for
from gradtrend.detect.rules.evaluate import Check, evaluate
from gradtrend.detect.rules.template import fill, template_values
from gradtrend.detect.summaries import summaries, with_outlines
from gradtrend.detect.verdict import Judged, judge_series, run_verdict
from gradtrend.model.finding import Evidence, Finding, by_weight
from gradtrend.model.numbers import times
from gradtrend.model.report import Checks, NonFinite, RunReport, SkippedRule
from gradtrend.model.rule import REPLAY_NOTE, Rule, Scope
from gradtrend.model.runlog import Note, RunLog
from gradtrend.model.words import Role, Trend

_Run = TypeVar("_Run", bound=RunReport)


def judge(log: RunLog, rules: Sequence[Rule], points: int = 0) -> RunReport:
    """The report on one run; with outlines of its series in about that many `points` each, where a chart is wanted."""
    run = run_curves(log)
    evaluated = [evaluate(rule, curve) for rule in rules if rule.note is None for curve in _curves(rule, run)]
    checks = _without_silenced(evaluated)
    judged = [judge_series(norm, [check for check in checks if check.curve.series is norm]) for norm in run.norms]
    verdict, sure = run_verdict(run, judged, checks)
    findings = [_finding_of(check) for check in checks if check.fired]
    fired = {finding.rule for finding in findings}
    noted = [rule for rule in rules if rule.note is not None and not fired.intersection(rule.unless)]
    findings += [finding for rule in noted for finding in _note_findings(rule, run)]
    facts = Facts(run, verdict, findings)
    return RunReport(
        run=log.run,
        verdict=verdict,
        confidence=sure,
        sources=log.sources,
        series=tuple(summaries(run, judged, evaluated, points)),
        nonfinite=_nonfinite(run.nonfinite, judged, checks),
        findings=tuple(by_weight(findings)),
        checks=_checks(rules, evaluated),
        captures=log.captures,
        overflow_reports=log.overflow_reports,
        settings=log.settings,
        name=log.name,
        folder=log.folder,
        next=next_actions(facts),
        so_far=so_far(facts),
    )


def outlined(report: _Run, log: RunLog, points: int) -> _Run:
    """A report that was made without outlines, with those of its series in about that many `points` each."""
    return replace(report, series=tuple(with_outlines(run_curves(log), report.series, points)))


def _curves(rule: Rule, run: RunCurves) -> list[Curve]:
    """What a rule is evaluated on."""
    if rule.scope is Scope.ONCE:
        return [run.curve(run.norms[0] if run.norms else None)]
    if rule.scope is Scope.FURTHEST:
        return [run.curve(series) for series in run.furthest]
    if rule.role is Role.GRAD_NORM:
        return [run.curve(series) for series in (run.layers if rule.scope is Scope.LAYER else run.norms)]
    if rule.role is Role.PARAM_NORM:
        return [run.curve(series) for series in run.param_norms]
    single = {Role.LOSS: run.loss, Role.LR: run.lr, Role.LOSS_SCALE: run.loss_scale}.get(rule.role)
    return [] if single is None else [run.curve(single)]


def _without_silenced(checks: list[Check]) -> list[Check]:
    """The checks but for those that fired and that a rule in `unless` silences.

    A rule on a total gradient norm is silenced by one that fired on the same norm or on the run as a whole, any other
    rule by one that fired anywhere in the run.
    """
    fired = {(check.rule.id, id(check.curve.series)) for check in checks if check.fired}
    run_wide = {check.rule.id for check in checks if check.fired and check.rule.scope is Scope.ONCE}
    anywhere = {rule for rule, _ in fired}

    def silenced(check: Check) -> bool:
        if check.rule.scope is Scope.RUN and check.rule.role is Role.GRAD_NORM:
            return any(other in run_wide or (other, id(check.curve.series)) in fired for other in check.rule.unless)
        return bool(anywhere.intersection(check.rule.unless))

    return [check for check in checks if not (check.fired and silenced(check))]


def _finding_of(check: Check) -> Finding:
    """The finding of a rule that fired."""
    rule, curve = check.rule, check.curve
    values = template_values(curve) | {e.measure: _shown(e) for e in check.evidence} | {"times": _times(check.evidence)}
    first, last = check.steps
    actions = actions_for(rule.actions, curve, values)
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=rule.severity,
        confidence=confidence(check.strength, check.points),
        message=fill(rule.message, values | {"onset": first if first is not None else values["onset"]}) or rule.summary,
        metric=curve.series.metric if curve.series is not None else None,
        layer=curve.series.layer if curve.series is not None else None,
        first_step=first,
        last_step=last,
        evidence=check.evidence,
        actions=tuple(text for _, text in actions),
        action_ids=tuple(action_id for action_id, _ in actions),
    )


def _shown(evidence: Evidence) -> object:
    """An observation as a message says it: shares in percent."""
    if MEASURES[evidence.measure].unit == "share" and evidence.observed is not None:
        return f"{evidence.observed:.0%}" if evidence.observed >= 0.01 else f"{evidence.observed:.2%}"
    return evidence.observed


def _times(evidence: Sequence[Evidence]) -> str | None:
    """The first of the observations that is a ratio in decades, as a person writes it: x300, x6e17."""
    decades = (one.observed for one in evidence if MEASURES[one.measure].unit == "decades" and one.observed is not None)
    return next((times(one) for one in decades), None)


def _note_findings(rule: Rule, run: RunCurves) -> list[Finding]:
    """One finding for each note of the rule's kind."""
    return [_note_finding(rule, run, note) for note in run.log.notes if note.kind == rule.note]


def _note_finding(rule: Rule, run: RunCurves, note: Note) -> Finding:
    curve = run.curve(next((s for s in run.norms if s.metric == note.metric), run.norms[0] if run.norms else None))
    values = template_values(curve, note)
    actions = actions_for(rule.actions, curve, values)
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=rule.severity,
        confidence=1.0,
        message=fill(rule.message, values) or note.message,
        metric=note.metric,
        first_step=note.first_step,
        last_step=note.last_step,
        evidence=tuple(Evidence(name, value) for name, value in note.measures),
        actions=tuple(text for _, text in actions),
        action_ids=tuple(action_id for action_id, _ in actions),
    )


def _nonfinite(state: NonFiniteState, judged: Iterable[Judged], checks: Sequence[Check]) -> NonFinite | None:
    if not state.any:
        return None
    onsets = [j.onset_step for j in judged if j.trend is Trend.EXPLODING and j.onset_step is not None]
    onset = min(onsets, default=None)
    first = state.collapse_step if state.collapsed else state.grad_first
    named = next((check.rule.cause for check in checks if check.fired and check.rule.cause is not None), None)
    return NonFinite(
        grad_first_step=state.grad_first,
        loss_first_step=state.loss_first,
        order=order_of(state),
        cause=cause_of(state, bool(onsets), named),
        forward_first_step=state.forward_first,
        lead_steps=None if onset is None or first is None or first < onset else first - onset,
        recovered=not state.collapsed and state.came_back > 0,
        grad_count=state.grad_count,
        loss_count=state.loss_count,
    )


def _checks(rules: Sequence[Rule], checks: Sequence[Check]) -> Checks:
    """Which rules were checked, and why the others were not."""
    ran = {check.rule.id for check in checks if check.missing is None} | {
        r.id for r in rules if r.note not in (None, REPLAY_NOTE)
    }
    missing = {
        check.rule.id: check.missing for check in checks if check.missing is not None and check.rule.id not in ran
    }
    skipped = [
        SkippedRule(rule.id, missing.get(rule.id) or _nothing_to_check(rule)) for rule in rules if rule.id not in ran
    ]
    return Checks(tuple(r.id for r in rules if r.id in ran), tuple(skipped))


_IN_WORDS = {
    Role.LOSS: "loss",
    Role.LR: "learning rate",
    Role.LOSS_SCALE: "loss scale",
    Role.PARAM_NORM: "parameter norm",
}


def _nothing_to_check(rule: Rule) -> str:
    if rule.note == REPLAY_NOTE:
        return "no step was replayed"
    if rule.scope is Scope.LAYER:
        return "no per-layer norms"
    return f"no {_IN_WORDS.get(rule.role, 'gradient norm')} logged"
