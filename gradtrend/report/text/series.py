"""What was found in a run, before any judgement: sources, metrics, and why each was or was not used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Role
from gradtrend.report.text.lines import listed, wrapped
from gradtrend.report.text.report import source_lines
from gradtrend.report.text.table import run_title
from gradtrend.report.wording.escape import escape, shorten
from gradtrend.report.wording.numbers import steps
from gradtrend.report.wording.style import Style

if TYPE_CHECKING:  # the help of all commands loads this file
    from gradtrend.model.series import LoggedSeries

_LEAST_NAME = 48  # columns for the names of metrics that stand in one line with the rest
_LAYER = 20
_LOOKS_LIKE = ("grad", "norm")
_HEAD = ("metric", "role", "layer", "points", "steps", "parts", "NaN/inf")


def log_text(log: RunLog, series: Sequence[LoggedSeries], style: Style) -> str:
    """One run's sources and series; reasons only for gradient norms and for names that look like one."""
    lines = [style.paint(escape(run_title(log.run, log.name)), "bold"), "", style.paint("Sources", "bold")]
    lines += source_lines(log.sources, style) or ["  none"]
    lines += ["", style.paint("Series", "bold"), *_table(series, style)]
    lines += ["", style.paint("Why taken as the gradient norm, or not", "bold"), *_reason_lines(series, style)]
    notes = [line for note in log.notes for line in wrapped(f"{note.kind}: {note.message}", style, rest="    ")]
    if notes:
        lines += ["", style.paint("Noticed while reading", "bold"), *notes]
    return "".join(f"{line}\n" for line in lines)


def _reason_lines(series: Sequence[LoggedSeries], style: Style) -> list[str]:
    """Reasons for gradient norms and for names that look like one, the metrics of one reason together."""
    reasons: dict[str, list[str]] = {}
    for one in series:
        if one.role is Role.GRAD_NORM or any(word in one.metric.lower() for word in _LOOKS_LIKE):
            reasons.setdefault(one.why, []).append(one.metric)
    lines = [
        line
        for reason, names in reasons.items()
        for line in wrapped(f"{listed(names, style, whole=True)}: {reason}", style, rest="    ", whole_words=True)
    ]
    if not any(one.role is Role.GRAD_NORM for one in series):
        lines += wrapped("No series is taken as the gradient norm; --metric NAME names it.", style)
    return lines


def _table(series: Sequence[LoggedSeries], style: Style) -> list[str]:
    """One line a series. A long name has a line of its own, so that it can be copied whole from any screen."""
    cells = [_HEAD, *(_cells(one, style) for one in series)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    room = max(_LEAST_NAME, style.width - sum(2 + width for width in widths[1:]) - 2)
    widths[0] = max(len(name) for name, *_ in cells if len(name) <= room)
    lines: list[str] = []
    for name, *others in cells:
        fits = len(name) <= room
        columns = zip((name if fits else "", *others), widths, strict=True)
        lines += [] if fits else [f"  {name}"]
        lines.append("  " + "  ".join(cell.ljust(width) for cell, width in columns).rstrip())
    return lines + _escapes(series, style)


def _escapes(series: Sequence[LoggedSeries], style: Style) -> list[str]:
    """How names are to be read that would not be safe to print."""
    if all(escape(one.metric) == one.metric for one in series):
        return []
    return wrapped("\\x.. and \\u.. stand for characters that a terminal obeys; --metric takes them so.", style)


def _cells(series: LoggedSeries, style: Style) -> tuple[str, ...]:
    return (
        escape(series.metric),
        series.role,
        shorten(escape(series.layer or "-"), _LAYER, style.sign("…", "~")),
        str(series.points),
        steps(series.first_step, series.last_step).removeprefix("steps ").removeprefix("step ") or "-",
        str(series.segments),
        str(series.nonfinite),
    )
