"""GitHub's workflow commands, which become annotations of a check.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradtrend.model.report import Report, RunReport
from gradtrend.report.ci.outcomes import (
    Level,
    counted,
    failure_text,
    group_message,
    grouped,
    is_unjudged,
    level_of,
    level_unjudged,
    place_of,
    place_of_failure,
    title_of,
    worst_first,
)
from gradtrend.report.wording.escape import escape, shorten
from gradtrend.report.wording.style import Style

MOST = 10  # annotations of a level and step; GitHub drops what is beyond
_TITLE = 200  # characters; GitHub's check runs take 255
_MESSAGE = 2000  # characters; an annotation is read beside code, and takes 64 KiB
_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTICE: "notice"}


@dataclass(frozen=True, slots=True)
class _Annotation:
    level: Level
    title: str
    message: str
    place: tuple[str, int | None] | None


def render_github(report: Report, style: Style) -> str:
    """A line an annotation, errors first, and how many runs there are; the style plays no part. What fails the call is
    an error. At most ten a level, of which the last says how many more there are.
    """
    found = [one for run in worst_first(report) for one in _of_run(run, report)]
    found += [
        _Annotation(
            level_unjudged(report, failure),
            f"{escape(failure.path)}: could not be read",
            failure_text(failure),
            place_of_failure(failure, report),
        )
        for failure in report.failures
    ]
    lines = []
    for level in sorted(Level, reverse=True):
        of_level = [one for one in found if one.level is level]
        shown = of_level if len(of_level) <= MOST else of_level[: MOST - 1]
        lines += [_command(one) for one in shown]
        if len(shown) < len(of_level):
            lines.append(_command(_more(of_level[len(shown) :])))
    return "".join(f"{line}\n" for line in [*lines, f"gradtrend: {counted(report)}"])


def _of_run(run: RunReport, report: Report) -> Iterator[_Annotation]:
    """An annotation for each rule that fired on a run, and one for a run that could not be judged."""
    place = place_of(run, report)
    groups = grouped(run, report)
    if is_unjudged(run):
        why = group_message(groups[0], run) if groups else "Too little is logged."
        yield _Annotation(level_unjudged(report), f"{title_of(run)}: could not be judged", why, place)
        groups = [group for group in groups if level_of(group[0], report) is Level.ERROR or group is not groups[0]]
    for group in groups:
        top = group[0]
        title = f"{escape(top.rule)} {escape(top.name)}: {title_of(run)}"
        yield _Annotation(level_of(top, report), title, group_message(group, run), place)


def _more(left: list[_Annotation]) -> _Annotation:
    what = _COMMANDS[left[0].level]
    text = f"and {len(left)} more {what}{'s' if len(left) > 1 else ''}: see the job's summary, or its log."
    return _Annotation(left[0].level, f"gradtrend: {len(left)} more", text, None)


def _command(one: _Annotation) -> str:
    file, line = one.place or (None, None)
    named = {"file": None if file is None else escape(file), "line": line, "title": shorten(one.title, _TITLE)}
    words = ",".join(f"{name}={_property(str(value))}" for name, value in named.items() if value is not None)
    return f"::{_COMMANDS[one.level]} {words}::{_data(shorten(one.message, _MESSAGE))}"


def _data(text: str) -> str:
    """As the runner's own toolkit escapes what follows a command (`escapeData` of @actions/core)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """As `escapeProperty` there."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
