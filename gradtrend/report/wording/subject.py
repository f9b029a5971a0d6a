"""What is said of a run, before it is laid out: its name, its findings by rule, the series that decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from gradtrend.model.finding import Finding, by_weight
from gradtrend.model.report import RunReport, SeriesReport
from gradtrend.model.words import Role, Trend

_MAX_MESSAGES = 4  # of findings of one rule that nothing but their messages tells apart


def run_title(run: str, name: str | None) -> str:
    """The path of a run, and what its store calls it where the path does not end so."""
    return run if name is None or PurePath(run).name == name else f"{run} ({name})"


def deciding_series(run: RunReport) -> SeriesReport | None:
    """The gradient norm that the weightiest finding names; else a judged one, a total before a layer."""
    norms = [s for s in run.series if s.role is Role.GRAD_NORM]
    named = [f.metric for f in by_weight(run.findings) if f.metric]
    ranked = sorted(norms, key=lambda s: (s.trend in (None, Trend.UNDETERMINED), s.layer is not None))
    for metric in named:
        found = next((s for s in ranked if s.metric == metric), None)
        if found is not None:
            return found
    return ranked[0] if ranked else None


def grouped(run: RunReport) -> list[list[Finding]]:
    """The findings of one rule together: the rules that gave the verdict first, then the weightiest."""
    groups: dict[str, list[Finding]] = {}
    for finding in by_weight(run.findings):
        groups.setdefault(finding.rule, []).append(finding)
    verdict = run.verdict.value
    return sorted(groups.values(), key=lambda group: group[0].name not in (verdict, f"{verdict}-layer"))


def messages(group: Sequence[Finding]) -> list[str]:
    """The weightiest message for all; each one where nothing else tells the findings of a group apart."""
    if len(group) == 1:
        return [group[0].message]
    if any(f.layer or f.metric or f.first_step is not None for f in group):
        return [f"e.g. {group[0].message}"]
    return distinct(f.message for f in group)[:_MAX_MESSAGES]


def known_of(group: Sequence[Finding]) -> str:
    """How many of a group's findings a baseline lists."""
    count = sum(finding.known for finding in group)
    return "" if not count else " (known)" if count == len(group) else f" ({count} of {len(group)} known)"


def debug_texts(run: RunReport) -> list[str]:
    """What the files under `debug/` say: one sentence each, with the outcome of a replay."""
    texts = []
    for report in run.overflow_reports:
        if report.detected and report.module:
            kind = f" ({report.module_class})" if report.module_class else ""
            texts.append(f"{report.path}: first non-finite in module {report.module}{kind}, batch {report.batch}.")
    for capture in run.captures:
        step = "" if capture.step is None else f" of step {capture.step}"
        problem = f", unreadable: {capture.problem}" if capture.problem else ""
        texts.append(f"{capture.path}: saved bad batch{step}{problem}.")
        if run.replays and capture.path in run.replays:
            from gradtrend.report.wording.replay import replay_headline

            texts.append(f"{capture.path}: replayed: {replay_headline(run.replays[capture.path])}.")
    return texts


def distinct(names: Iterable[str | None]) -> list[str]:
    """Each name once, in the order given, without those that are missing or empty."""
    return list(dict.fromkeys(name for name in names if name))
