"""The JSON report: a contract (additive only), described by `report/schema.json`."""

from __future__ import annotations

import json
from importlib import resources

from gradtrend.model.advice import Advice
from gradtrend.model.capture import Capture
from gradtrend.model.finding import Finding, by_weight
from gradtrend.model.report import SCHEMA_VERSION, Failure, Report, RunReport, SeriesReport
from gradtrend.report.json.replay import replay_to_dict
from gradtrend.report.json.source import source_to_dict
from gradtrend.report.json.strict import Json, strict_json
from gradtrend.report.wording.style import Style
from gradtrend.version import __version__


def render_json(report: Report, style: Style) -> str:
    """The report as strict RFC 8259 JSON in ASCII; the style plays no part."""
    return strict_json(_report_to_dict(report))


def _report_to_dict(report: Report) -> Json:
    """The report as plain dicts and lists, before non-finite numbers become null."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "gradtrend", "version": __version__},
        "exit_code": report.exit_code,
        "runs": [_run(run) for run in report.runs],
        "failures": [_failure(failure) for failure in report.failures],
    }


def schema() -> Json:
    """The JSON Schema (draft 2020-12) of the report."""
    text = resources.files("gradtrend.report").joinpath("schema.json").read_text(encoding="utf-8")
    loaded: Json = json.loads(text)
    return loaded


def _run(run: RunReport) -> Json:
    return {
        "run": run.run,
        "name": run.name,
        "verdict": run.verdict,
        "confidence": run.confidence,
        "sources": [source_to_dict(source) for source in run.sources],
        "series": [_series(series) for series in run.series],
        "nonfinite": _nonfinite(run),
        "findings": [_finding_to_dict(finding) for finding in by_weight(run.findings)],
        "checks": {
            "ran": list(run.checks.ran),
            "skipped": [{"rule": s.rule, "reason": s.reason} for s in run.checks.skipped],
        },
        "captures": [_capture(capture, run) for capture in run.captures],
        "next": [_advice(advice) for advice in run.next],
        "so_far": run.so_far,
    }


def _advice(advice: Advice) -> Json:
    found: Json = {"action": advice.action, "text": advice.text, "rules": list(advice.rules)}
    return found | {"conditional": True} if advice.conditional else found


def _series(series: SeriesReport) -> Json:
    return {
        "metric": series.metric,
        "role": series.role,
        "layer": series.layer,
        "points": series.points,
        "first_step": series.first_step,
        "last_step": series.last_step,
        "trend": series.trend,
        "onset_step": series.onset_step,
        "baseline": series.baseline,
        "peak": series.peak,
        "decades": series.decades,
        "covers": series.covers,
    }


def _nonfinite(run: RunReport) -> Json | None:
    found = run.nonfinite
    if found is None:
        return None
    return {
        "grad_first_step": found.grad_first_step,
        "loss_first_step": found.loss_first_step,
        "order": found.order,
        "cause": found.cause,
        "forward_first_step": found.forward_first_step,
        "lead_steps": found.lead_steps,
        "recovered": found.recovered,
        "grad_count": found.grad_count,
        "loss_count": found.loss_count,
    }


def _finding_to_dict(finding: Finding) -> Json:
    """One finding."""
    found: Json = {
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "message": finding.message,
        "metric": finding.metric,
        "layer": finding.layer,
        "first_step": finding.first_step,
        "last_step": finding.last_step,
        "evidence": [{"measure": e.measure, "observed": e.observed, "limit": e.limit} for e in finding.evidence],
        "actions": list(finding.actions),
        "action_ids": list(finding.action_ids),
    }
    return found | {"known": True} if finding.known else found


def _capture(capture: Capture, run: RunReport) -> Json:
    replays = run.replays or {}
    replay = replays.get(capture.path)
    return {
        "path": capture.path,
        "kind": capture.kind,
        "step": capture.step,
        "replay": None if replay is None else replay_to_dict(replay),
    }


def _failure(failure: Failure) -> Json:
    return {"path": failure.path, "message": failure.message, "hint": failure.hint}
