"""The JSON report a run a line, for thousands of runs: the lists of checks, which are mostly the same, stand once."""

from __future__ import annotations

from gradtrend.model.report import Checks, Report
from gradtrend.report.json.report import checks_to_dict, failures_to_list, heading, run_to_dict
from gradtrend.report.json.strict import strict_line
from gradtrend.report.wording.style import Style


def render_jsonl(report: Report, style: Style) -> str:
    """First a line with what the runs share: the number of `runs`, the `failures`, and the different `checks`. Then a
    line for each run, as the JSON report has it but for `checks`, whose `list` is a place in those of the first line.
    """
    places: dict[Checks, int] = {}
    lines = []
    for run in report.runs:
        place = places.setdefault(run.checks, len(places))
        lines.append(strict_line(run_to_dict(run) | {"checks": {"list": place}}))
    shared = {"runs": len(report.runs), "failures": failures_to_list(report), "checks": [*map(checks_to_dict, places)]}
    return "".join((strict_line(heading(report) | shared), *lines))
