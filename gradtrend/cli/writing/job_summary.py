"""The summary of a job on GitHub: what annotations have no room for."""

from __future__ import annotations

import os
from pathlib import Path

from gradtrend.cli.output import complain
from gradtrend.model.report import Report
from gradtrend.report import Style, escape, reporter

_VARIABLE = "GITHUB_STEP_SUMMARY"


def add_to_job_summary(report: Report) -> None:
    """Add the report as Markdown to the file that GitHub's runner names. That it cannot be written is told and changes
    no exit code: the annotations are there.
    """
    file = os.environ.get(_VARIABLE)
    if not file or Path(file).is_fifo():  # whose reader might never come
        return
    try:
        with Path(file).open("a", encoding="utf-8", errors="backslashreplace") as summary:
            summary.write(str(reporter("markdown")(report, Style())))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        complain(f"{_VARIABLE} {escape(file)}: cannot be written ({escape(str(why))})")
