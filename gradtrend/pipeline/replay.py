"""A path -> the replays of its captured steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gradtrend.detect.rules import load_rules
from gradtrend.errors import InputError
from gradtrend.ingest import place_of, settings_of
from gradtrend.ingest.captures import find_captures, read_capture
from gradtrend.model.advice import Advice
from gradtrend.model.capture import Capture
from gradtrend.model.contents import CaptureContents
from gradtrend.model.finding import Finding, by_weight
from gradtrend.model.replay import Replay
from gradtrend.model.report import Checks, RunReport
from gradtrend.model.rule import REPLAY_NOTE, Rule
from gradtrend.pipeline.inputs import check_no_input
from gradtrend.replay import ReplayOptions, replay_captures, unreadable, with_findings


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
            'debug_args={"nancapture": {"enabled": True}}, other loops with gradtrend.replay.native.save_capture.',
        )
    if output is not None:
        read = [_file_of(run, capture) for run in runs for capture in find_captures(run)]
        check_no_input(output, [path], read, rules_dir)
    return tuple(result for run in runs for result in _replay_run(run, find_captures(run), options, rules))


def _runs_at(path: str) -> list[Path]:
    """The folders, or the one file, with captures. Raises OSError where it cannot be looked at."""
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


def with_replays(report: RunReport, trust: bool, rules: tuple[Rule, ...]) -> RunReport:
    """The report of an analysed run with the replays of its captures and their findings."""
    if not report.captures or report.folder is None:
        return report
    options = ReplayOptions(trust=trust, setting=report.settings.precision)
    results = _replay_run(report.folder, report.captures, options, rules)
    replays = {capture.path: result for capture, result in zip(report.captures, results, strict=True)}
    findings = [finding for result in results for finding in result.findings]
    ran = {rule.id for rule in rules if rule.note == REPLAY_NOTE}
    checks = Checks(
        tuple(sorted({*report.checks.ran, *ran})),
        tuple(skipped for skipped in report.checks.skipped if skipped.rule not in ran),
    )
    ordered = tuple(by_weight((*report.findings, *findings)))
    return replace(report, findings=ordered, replays=replays, checks=checks, next=_with_those_of(findings, report.next))


def _with_those_of(findings: list[Finding], advice: tuple[Advice, ...]) -> tuple[Advice, ...]:
    """The next actions with those of what the replays found before them: a cause that was seen, not read off a log."""
    found = {
        action: Advice(action, text, (f.rule,))
        for f in by_weight(findings)[::-1]
        for action, text in list(zip(f.action_ids, f.actions, strict=True))[::-1]
    }
    own = list(found.values())[::-1]
    return (*own, *(one for one in advice if one.action not in found))


def _children(folder: Path) -> list[Path]:
    if not folder.is_dir() or find_captures(folder):
        return []
    return sorted(child for child in folder.iterdir() if child.is_dir())


def _replay_run(
    run: Path, captures: tuple[Capture, ...], options: ReplayOptions, rules: tuple[Rule, ...]
) -> tuple[Replay, ...]:
    """The replays of one run's captures, those of its ranks taken together, in the captures' order."""
    if options.setting is None:
        options = replace(options, setting=settings_of(_run_folder(run)).precision)
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


def _run_folder(path: Path) -> Path:
    """The run that a capture, or a folder under `debug/`, belongs to."""
    for folder in (path, *path.resolve().parents):
        if folder.name == "debug":
            return folder.parent
    return path if path.is_dir() else path.parent
