"""What was found in a run, before any judgement: sources, metrics, and why each was or was not used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Role
from gradtrend.report.text.lines import listed, wrapped
from gradtrend.report.text.report import source_lines
from gradtrend.report.wording.escape import escape, shorten
from gradtrend.report.wording.numbers import steps
from gradtrend.report.wording.series_rows import series_rows
from gradtrend.report.wording.style import Style

_NAME = 40  # columns for a metric's name
_LOOKS_LIKE = ("grad", "norm")
_HEAD = ("metric", "role", "layer", "points", "steps", "parts", "NaN/inf")


def log_text(log: RunLog, explain: Callable[[str], str], style: Style) -> str:
    """The same for a person; reasons only for gradient norms and for names that look like one."""
    lines = [style.paint(escape(log.run), "bold"), "", style.paint("Sources", "bold")]
    lines += source_lines(log.sources, style) or ["  none"]
    rows = series_rows(log)
    lines += ["", style.paint("Series", "bold"), *_table(rows, style)]
    lines += ["", style.paint("Why taken as the gradient norm, or not", "bold"), *_reason_lines(rows, explain, style)]
    notes = [line for note in log.notes for line in wrapped(f"{note.kind}: {note.message}", style, rest="    ")]
    if notes:
        lines += ["", style.paint("Noticed while reading", "bold"), *notes]
    return "".join(f"{line}\n" for line in lines)


def _reason_lines(rows: list[dict[str, Any]], explain: Callable[[str], str], style: Style) -> list[str]:
    """Reasons for gradient norms and for names that look like one, the metrics of one reason together."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row["role"] == Role.GRAD_NORM or any(word in row["metric"].lower() for word in _LOOKS_LIKE):
            reasons.setdefault(explain(row["metric"]), []).append(row["metric"])
    lines = [
        line
        for reason, names in reasons.items()
        for line in wrapped(f"{listed(names, style)}: {reason}", style, rest="    ")
    ]
    if not any(row["role"] == Role.GRAD_NORM for row in rows):
        lines += wrapped("No series is taken as the gradient norm; --metric NAME names it.", style)
    return lines


def _table(rows: list[dict[str, Any]], style: Style) -> list[str]:
    mark = style.sign("…", "~")
    cells = [_HEAD] + [
        (
            shorten(escape(row["metric"]), _NAME, mark),
            row["role"],
            shorten(escape(row["layer"] or "-"), _NAME // 2, mark),
            str(row["points"]),
            steps(row["first_step"], row["last_step"]).removeprefix("steps ").removeprefix("step ") or "-",
            str(row["segments"]),
            str(row["nonfinite"]),
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    ]
