"""Report -> str. One file a format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gradtrend.model.report import Report
from gradtrend.report.json import render_json
from gradtrend.report.style import Style
from gradtrend.report.text import render_text

REPORTERS: Mapping[str, Callable[[Report, Style], str]] = {
    "text": render_text,
    "json": render_json,
}
