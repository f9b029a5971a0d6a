"""The JSON report: a contract (additive only), described by `report/schema.json`."""

from __future__ import annotations

import json
from importlib import resources

from gradtrend.model.advice import Advice
from gradtrend.model.capture import Capture
from gradtrend.model.finding import Finding, by_weight
from gradtrend.model.report import SCHEMA_VERSION, Checks, Report, RunReport, SeriesReport
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
    return {**heading(report), "runs": [run_to_dict(run) for run in report.runs], "failures": failures_to_list(report)}


def heading(report: Report) -> Json:
    """What every document of a report begins with."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "gradtrend", "version": __version__},
        "exit_code": report.exit_code,
    }


def failures_to_list(report: Report) -> list[Json]:
    """The paths that could not be read."""
    return [{"path": f.path, "message": f.message, "hint": f.hint} for f in report.failures]


def schema() -> Json:
    """The JSON Schema (draft 2020-12) of the report."""
    text = resources.files("gradtrend.report").joinpath("schema.json").read_text(encoding="utf-8")
    loaded: Json = json.loads(text)
    return loaded


def run_to_dict(run: RunReport) -> Json:
    """One run, before non-finite numbers become null."""
    return {
        "run": run.run,
        "name": run.name,
        "verdict": run.verdict,
        "confidence": run.confidence,
        "sources": [source_to_dict(source) for source in run.sources],
        "series": [_series(series) for series in run.series],
        "nonfinite": _nonfinite(run),
        "findings": [_finding_to_dict(finding) for finding in by_weight(run.findings)],
        "checks": checks_to_dict(run.checks),
        "captures": [_capture(capture, run) for capture in run.captures],
        "next": [_advice(advice) for advice in run.next],
        "so_far": run.so_far,
    }


def checks_to_dict(checks: Checks) -> Json:
    """Which rules were checked on a run, and why others were not."""
    skipped = [{"rule": skipped.rule, "reason": skipped.reason} for skipped in checks.skipped]
    return {"ran": list(checks.ran), "skipped": skipped}


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
