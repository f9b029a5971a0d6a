"""RunLog + rules -> RunReport: the front of this room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradtrend.detect.confidence import confidence
from gradtrend.detect.curves.case import Case, RunCase, run_case
from gradtrend.detect.curves.nonfinite import NonFiniteState, cause_of, order_of
from gradtrend.detect.measures import MEASURES
from gradtrend.detect.rules.actions import actions_for, fill
from gradtrend.detect.rules.evaluate import Outcome, evaluate
from gradtrend.detect.rules.facts import template_values
from gradtrend.detect.rules.steps import steps_of
from gradtrend.detect.series_report import series_report
from gradtrend.detect.verdict import Judged, judge_series, run_verdict
from gradtrend.model.finding import Evidence, Finding
from gradtrend.model.report import Checks, NonFinite, RunReport, SkippedRule
from gradtrend.model.rule import REPLAY_NOTE, Rule
from gradtrend.model.runlog import Note, RunLog
from gradtrend.model.words import Role, Trend


def judge(log: RunLog, rules: Sequence[Rule]) -> RunReport:
    """Judge one run."""
    run = run_case(log)
    evaluated = [evaluate(rule, case) for rule in rules if rule.note is None for case in _cases(rule, run)]
    outcomes = _without_silenced(evaluated)
    judged = [judge_series(norm, [o for o in outcomes if o.case.series is norm]) for norm in run.norms]
    verdict, sure = run_verdict(run, judged, outcomes)
    findings = [finding_of(o) for o in outcomes if o.fired]
    findings += [f for rule in rules if rule.note is not None for f in _note_findings(rule, run)]
    return RunReport(
        run=log.run,
        verdict=verdict,
        confidence=sure,
        sources=log.sources,
        series=tuple(series_report(run, judged)),
        nonfinite=_nonfinite(run.nonfinite, judged),
        findings=tuple(sorted(findings, key=_finding_order)),
        checks=_checks(rules, evaluated),
        captures=log.captures,
        overflow_reports=log.overflow_reports,
        settings=log.settings,
    )


def _finding_order(finding: Finding) -> tuple[int, str, int]:
    return -finding.severity.rank, finding.rule, finding.first_step or 0


def _cases(rule: Rule, run: RunCase) -> list[Case]:
    """What a rule is evaluated on."""
    if rule.scope == "once":
        return [run.case(run.norms[0] if run.norms else None)]
    role = Role(rule.role)
    if role is Role.GRAD_NORM:
        return [run.case(series) for series in (run.layers if rule.scope == "layer" else run.norms)]
    if role is Role.PARAM_NORM:
        return [run.case(series) for series in run.param_norms]
    single = {Role.LOSS: run.loss, Role.LR: run.lr, Role.LOSS_SCALE: run.loss_scale}.get(role)
    return [] if single is None else [run.case(single)]


def _without_silenced(outcomes: list[Outcome]) -> list[Outcome]:
    """Drop what a rule in `unless` silences.

    A rule on a total gradient norm is silenced by one that fired on the same norm or on the run as a whole, any other
    rule by one that fired anywhere in the run.
    """
    fired = {(o.rule.id, id(o.case.series)) for o in outcomes if o.fired}
    run_wide = {o.rule.id for o in outcomes if o.fired and o.rule.scope == "once"}
    anywhere = {rule for rule, _ in fired}

    def silenced(o: Outcome) -> bool:
        if o.rule.scope == "run" and o.rule.role == Role.GRAD_NORM:
            return any(other in run_wide or (other, id(o.case.series)) in fired for other in o.rule.unless)
        return bool(anywhere.intersection(o.rule.unless))

    return [o for o in outcomes if not (o.fired and silenced(o))]


def finding_of(outcome: Outcome) -> Finding:
    """The finding of a rule that fired."""
    rule, case = outcome.rule, outcome.case
    values = template_values(case) | {e.measure: _shown(e) for e in outcome.evidence}
    first, last = steps_of(outcome)
    points = case.shape.points if rule.trend is not None and case.shape is not None else None
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=rule.severity,
        confidence=confidence(outcome.strength, points),
        message=fill(rule.message, values | {"onset": first if first is not None else values["onset"]}) or rule.summary,
        metric=case.series.metric if case.series is not None else None,
        layer=case.series.layer if case.series is not None else None,
        first_step=first,
        last_step=last,
        evidence=outcome.evidence,
        actions=actions_for(rule.actions, case, values),
    )


def _shown(evidence: Evidence) -> object:
    """An observation as a message says it: shares in percent."""
    if MEASURES[evidence.measure].unit == "share" and evidence.observed is not None:
        return f"{evidence.observed:.0%}" if evidence.observed >= 0.01 else f"{evidence.observed:.2%}"
    return evidence.observed


def _note_findings(rule: Rule, run: RunCase) -> list[Finding]:
    """One finding for each note of the rule's kind."""
    return [_note_finding(rule, run, note) for note in run.log.notes if note.kind == rule.note]


def _note_finding(rule: Rule, run: RunCase, note: Note) -> Finding:
    case = run.case(next((s for s in run.norms if s.metric == note.metric), run.norms[0] if run.norms else None))
    values = template_values(case, note)
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
        actions=actions_for(rule.actions, case, values),
    )


def _nonfinite(state: NonFiniteState, judged: Iterable[Judged]) -> NonFinite | None:
    if not state.any:
        return None
    exploding = [j for j in judged if j.trend is Trend.EXPLODING and j.onset_step is not None]
    onset = min((j.onset_step for j in exploding if j.onset_step is not None), default=None)
    first = state.collapse_step if state.collapsed else state.grad_first
    return NonFinite(
        grad_first_step=state.grad_first,
        loss_first_step=state.loss_first,
        order=order_of(state),
        cause=cause_of(state, bool(exploding)),
        forward_first_step=state.forward_first,
        lead_steps=None if onset is None or first is None or first < onset else first - onset,
        recovered=not state.collapsed and state.came_back > 0,
        grad_count=state.grad_count,
        loss_count=state.loss_count,
    )


def _checks(rules: Sequence[Rule], outcomes: Sequence[Outcome]) -> Checks:
    """Which rules were checked, and why the others were not."""
    ran = {o.rule.id for o in outcomes if o.missing is None} | {
        r.id for r in rules if r.note not in (None, REPLAY_NOTE)
    }
    missing = {o.rule.id: o.missing for o in outcomes if o.missing is not None and o.rule.id not in ran}
    skipped = [
        SkippedRule(rule.id, missing.get(rule.id) or _nothing_to_check(rule)) for rule in rules if rule.id not in ran
    ]
    return Checks(tuple(r.id for r in rules if r.id in ran), tuple(skipped))


def _nothing_to_check(rule: Rule) -> str:
    if rule.note == REPLAY_NOTE:
        return "no step was replayed"
    if rule.scope == "layer":
        return "no per-layer norms"
    what = {"loss": "loss", "lr": "learning rate", "loss_scale": "loss scale", "param_norm": "parameter norm"}
    return f"no {what.get(rule.role, 'gradient norm')} logged"
