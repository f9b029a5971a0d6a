"""The same step in several precisions, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from gradtrend.model.sweep import SweepRow
from gradtrend.report.text.lines import wrapped
from gradtrend.report.wording.escape import escape, shorten
from gradtrend.report.wording.numbers import number
from gradtrend.report.wording.style import Style

_NAME_WIDTH = 38  # of a module


def sweep_lines(rows: Sequence[SweepRow], style: Style) -> list[str]:
    """One line a precision; none where none was run."""
    if not rows:
        return []
    lines = [f"  {'':<16}{'loss':>11}{'grad norm':>11}  {'finite':<8}{'largest':>9}{'headroom':>14}  first bad module"]
    for row in rows:
        if row.finite is None:
            lines += wrapped(f"{row.precision:<16}could not be run: {row.problem}", style, rest=" " * 18)
            continue
        look = "yes" if row.finite else "NO"
        cells = f"{_cell(row.loss):>11}{_cell(row.gradient_norm):>11}  {look:<8}{_cell(row.largest):>9}"
        headroom = "" if row.headroom is None else f"{row.headroom:.1f} decades"
        bad = shorten(escape(row.first_bad_module or ""), _NAME_WIDTH)
        lines.append(f"  {row.precision:<16}{cells}{headroom:>14}  {bad}".rstrip())
    return lines


def _cell(value: float | None) -> str:
    return "" if value is None else number(value)
