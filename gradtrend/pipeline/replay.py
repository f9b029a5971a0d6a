"""A path -> the replays of its captured steps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gradtrend.detect.rules import load_rules
from gradtrend.errors import GradtrendError, InputError
from gradtrend.ingest import find_runs, is_remote, place_of, settings_of
from gradtrend.ingest.captures import find_captures, read_capture
from gradtrend.model.advice import Advice
from gradtrend.model.capture import Capture
from gradtrend.model.contents import CaptureContents
from gradtrend.model.finding import Finding, by_weight
from gradtrend.model.replay import Outcome, Replay
from gradtrend.model.report import Checks, RunReport
from gradtrend.model.rule import REPLAY_NOTE, Rule
from gradtrend.model.words import Role
from gradtrend.pipeline.failures import not_here
from gradtrend.pipeline.inputs import check_no_input
from gradtrend.pipeline.runs import AnalyzeOptions, log_of, runs_in
from gradtrend.replay import ReplayOptions, replay_captures, unreadable, with_findings

_PATIENCE = 300.0  # seconds for a process that imports torch and runs one step
_RAN = (Outcome.CONFIRMED, Outcome.FLAKY, Outcome.NOT_REPRODUCED)


def replay_path(
    path: str, options: ReplayOptions, rules_dir: Path | None = None, output: Path | None = None
) -> tuple[Replay, ...]:
    """The replays of all captures at `path`: a capture, a run folder, or a folder of runs.

    Raises `InputError` where there is none or the path cannot be read, `ConfigError` for rule files that cannot be
    used, and where `output`, the file that the report will replace, is one of the captures.
    """
    rules = load_rules(rules_dir)
    try:
        runs = _runs_at(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", "Check the permissions of the path.") from error
    if not runs:
        raise InputError(
            f"{path}: no captured step found",
            "Captures lie under debug/ of a run: LightlyTrain writes one with "
            'debug_args={"nancapture": {"enabled": True}}, other loops with gradtrend.recording.capture_step.',
        )
    if output is not None:
        read = [_file_of(run, capture) for run in runs for capture in find_captures(run)]
        check_no_input(output, [path], read, rules_dir)
    return tuple(result for run in runs for result in _replay_run(run, find_captures(run), options, rules))


def _runs_at(path: str) -> list[Path]:
    """The folders, or the one file, with captures. Raises OSError where it cannot be looked at."""
    if is_remote(path):
        raise not_here(path)
    given = Path(place_of(path))
    if not path or not given.exists():  # of an empty path, Path makes the current folder
        raise InputError(
            f"{path or 'an empty path'}: no such file or folder",
            "Give a run folder, or a capture file under its debug/.",
        )
    if given.is_dir():
        next(given.iterdir(), None)  # else a folder that may not be read looks like one without captures
    return [run for run in (given, *_children(given)) if find_captures(run)]


def _file_of(run: Path, capture: Capture) -> Path:
    return run if run.is_file() else run / capture.path


def with_replays(
    report: RunReport, trust: bool, rules: tuple[Rule, ...], announce: Callable[[str], None] | None = None
) -> RunReport:
    """The report of an analysed run with the replays of its captures and their findings."""
    if not report.captures or report.folder is None:
        return report
    options = ReplayOptions(
        trust=trust, setting=report.settings.precision, usual_norm=_usual_norm(report), announce=announce
    )
    results = _replay_run(report.folder, report.captures, options, rules)
    replays = {capture.path: result for capture, result in zip(report.captures, results, strict=True)}
    findings = [finding for result in results for finding in result.findings]
    ran = {rule.id for rule in rules if rule.note == REPLAY_NOTE}
    checks = Checks(
        tuple(sorted({*report.checks.ran, *ran})),
        tuple(skipped for skipped in report.checks.skipped if skipped.rule not in ran),
    )
    ordered = tuple(by_weight((*report.findings, *findings)))
    advice = report.next
    if any(result.outcome in _RAN for result in results):  # what has been replayed need not be
        advice = tuple(one for one in advice if one.action != "capture-and-replay")
    return replace(report, findings=ordered, replays=replays, checks=checks, next=_with_those_of(findings, advice))


def _with_those_of(findings: list[Finding], advice: tuple[Advice, ...]) -> tuple[Advice, ...]:
    """The next actions with those of what the replays found before them: a cause that was seen, not read off a log."""
    found: dict[str, Advice] = {}
    for finding in by_weight(findings):
        for action, text in zip(finding.action_ids, finding.actions, strict=True):
            if action is not None:  # of a rule of the user's that is older than actions have ids
                found.setdefault(action, Advice(action, text, (finding.rule,)))
    return (*found.values(), *(one for one in advice if one.action not in found))


def _children(folder: Path) -> list[Path]:
    if not folder.is_dir() or find_captures(folder):
        return []
    return sorted(child for child in folder.iterdir() if child.is_dir())


def _replay_run(
    run: Path, captures: tuple[Capture, ...], options: ReplayOptions, rules: tuple[Rule, ...]
) -> tuple[Replay, ...]:
    """The replays of one run's captures, those of its ranks taken together, in the captures' order."""
    folder = _run_folder(run)
    if options.setting is None:
        options = replace(options, setting=settings_of(folder).precision)
    if options.usual_norm is None and any(capture.finite for capture in captures):
        options = replace(options, usual_norm=_usual_norm_in(folder, rules))
    options = replace(options, first_run=_first_run)
    read: list[tuple[str, CaptureContents]] = []
    results: dict[str, Replay] = {}
    for capture in captures:
        file = _file_of(run, capture)
        try:
            read.append((str(file), read_capture(file)))
        except InputError as error:
            results[str(file)] = unreadable(str(file), capture.kind, error.message)
    results |= {result.inspection.path: result for result in replay_captures(read, options)}
    files = [str(_file_of(run, capture)) for capture in captures]
    return tuple(with_findings(results[file], rules) for file in files)


def _usual_norm_in(folder: Path, rules: tuple[Rule, ...]) -> float | None:
    """The gradient norm of the run's usual steps, by its log; None where there is no log of one run, or no norm."""
    from gradtrend.detect.judge import judge  # which most replays do without

    options = AnalyzeOptions()
    try:
        runs = [run for files in find_runs(str(folder)) for run in runs_in(files, options)]
        return _usual_norm(judge(log_of(runs[0], options), rules)) if len(runs) == 1 else None
    except GradtrendError:
        return None


def _usual_norm(report: RunReport) -> float | None:
    norms = (s for s in report.series if s.role is Role.GRAD_NORM and s.layer is None and s.baseline is not None)
    return next((series.baseline for series in norms), None)


def _first_run(path: str, device: str, precision: str) -> str | None:
    """What the first run of a captured step gives in a process of its own; None where it cannot be told."""
    code = "import sys; from gradtrend.pipeline.replay import run_once; sys.stdout.write(run_once(*sys.argv[1:]))"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, path, device, precision],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 and done.stdout else None


def run_once(path: str, device: str, precision: str) -> str:
    """Run a captured step once, in a process that is started for this, and say what came of it."""
    from gradtrend.replay import first_run

    return first_run(read_capture(Path(path)), device, precision)


def _run_folder(path: Path) -> Path:
    """The run that a capture, or a folder under `debug/`, belongs to."""
    for folder in (path, *path.resolve().parents):
        if folder.name == "debug":
            return folder.parent
    return path if path.is_dir() else path.parent
