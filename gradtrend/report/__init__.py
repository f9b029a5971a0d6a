"""Report -> str, one folder a format. The front of this room: the formats, and the words that the command line shares.

A format is loaded when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gradtrend.model.report import Report
from gradtrend.report.wording.escape import escape
from gradtrend.report.wording.failures import failure_message
from gradtrend.report.wording.style import Style

__all__ = ["REPORTERS", "Style", "escape", "failure_message"]


def _text(report: Report, style: Style) -> str:
    from gradtrend.report.text.report import render_text

    return render_text(report, style)


def _json(report: Report, style: Style) -> str:
    from gradtrend.report.json.report import render_json

    return render_json(report, style)


REPORTERS: Mapping[str, Callable[[Report, Style], str]] = {"text": _text, "json": _json}
