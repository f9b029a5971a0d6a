"""Several runs as a table: one line a run."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gradtrend.model.report import RunReport
from gradtrend.model.words import Verdict
from gradtrend.report.wording.brief import because, ends_at, is_well, onset_of
from gradtrend.report.wording.escape import escape
from gradtrend.report.wording.numbers import number, share
from gradtrend.report.wording.style import Style
from gradtrend.report.wording.subject import run_title
from gradtrend.report.wording.width import fitted, padded, width_of

LOOKS = {
    Verdict.EXPLODING: "red",
    Verdict.NAN_COLLAPSE: "red",
    Verdict.DIVERGING: "red",
    Verdict.VANISHING: "red",
    Verdict.WARMUP_SPIKE: "yellow",
    Verdict.STABLE: "green",
    Verdict.UNDETERMINED: "yellow",
}
_HEAD = ("verdict", "conf", "onset", "ends at", "why")
_WIDTHS = (12, 4, 7, 8)  # of all but the last two: the longest verdict, 0.99, a million steps, -1.23e-45
_RIGHT = (False, False, True, True, False)
_WHY, _WIDE_WHY = 24, 28  # on a narrow screen, and with 100 columns or more, or where nothing is cut
_WIDE = 100
_LEAST_NAME = 12  # columns of a name, on whatever screen
_GAP = "  "
_DISPENSABLE = (1, 3, 2)  # on a screen with no room for them, in this order: confidence, last value, onset


def common_folder(names: Sequence[str]) -> str:
    """The folder, or address, that all names of runs begin with, which a table says once; empty where there is none."""
    if len(names) < 2:
        return ""
    shared = os.path.commonprefix(list(names))  # noqa: RUF071  of addresses too; cut at a slash below
    folder = shared[: shared.rfind("/") + 1]
    return "" if folder == "/" else folder


def head_lines(below: str, style: Style) -> list[str]:
    """The folder that all runs lie below, and the names of the columns."""
    folder = [f"Runs below {escape(below)}"] if below else []
    return [style.paint(line, "dim") for line in (*folder, _line((*_HEAD, "run"), style))]


def row(run: RunReport, below: str, style: Style) -> str:
    """Verdict, confidence, onset, last value, why, and the name without the folder that all lie below."""
    title = run_title(run.run.removeprefix(below), run.name)
    return line(run.verdict, run.confidence, onset_of(run), ends_at(run), because(run), title, is_well(run), style)


def line(
    verdict: Verdict | None,
    confidence: float | None,
    onset: int | None,
    last: float | None,
    why: str,
    title: str,
    well: bool,
    style: Style,
) -> str:
    """A row of the table, of these values; a run without a verdict could not be read."""
    cells = (
        "unreadable" if verdict is None else verdict.value,
        "-" if confidence is None else share(confidence),
        "-" if onset is None else str(onset),
        "-" if last is None else number(last),
        escape(why) or "-",
        escape(title),
    )
    look = "yellow" if verdict is None or (verdict is Verdict.STABLE and not well) else LOOKS[verdict]
    return _line(cells, style, look)


def _line(cells: Sequence[str], style: Style, look: str = "") -> str:
    """Cells in columns; on a screen the last is cut, so that a row stays a line."""
    mark = style.sign("…", "~")
    wide = style.columns is None or style.columns >= _WIDE
    all_widths = (*_WIDTHS, _WIDE_WHY if wide else _WHY)
    kept = _kept(all_widths, style.columns)
    widths = [all_widths[i] for i in kept]
    parts = []
    for i, width in zip(kept, widths, strict=True):
        cell, right = cells[i], _RIGHT[i]
        short = fitted(cell, width, mark)
        parts.append(" " * (width - width_of(short)) + short if right else padded(short, width))
    parts[0] = style.paint(parts[0], look) if look else parts[0]
    room = None if style.columns is None else max(_LEAST_NAME, style.columns - sum(widths) - len(_GAP) * len(widths))
    return _GAP.join((*parts, cells[-1] if room is None else fitted(cells[-1], room, mark)))


def _kept(widths: Sequence[int], columns: int | None) -> list[int]:
    """The places of the columns before the name for which a screen has room."""
    kept = list(range(len(widths)))
    for place in _DISPENSABLE:
        if columns is not None and sum(widths[i] + len(_GAP) for i in kept) + _LEAST_NAME > columns:
            kept.remove(place)
    return kept
