"""The report as one HTML file: a run by itself, or a table of runs with a section for each."""

from __future__ import annotations

from collections.abc import Sequence

from gradtrend.model.report import Report, RunReport
from gradtrend.report.html.charts import chart_data
from gradtrend.report.html.document import document
from gradtrend.report.html.layers import heat_map
from gradtrend.report.html.overview import failed, overview
from gradtrend.report.html.points import Json
from gradtrend.report.html.run import run_section
from gradtrend.report.wording.brief import by_badness
from gradtrend.report.wording.numbers import plural
from gradtrend.report.wording.style import Style
from gradtrend.report.wording.subject import run_title

# 20 to 50 KB a run: 1,000 runs stay a page of a few MB, which a browser opens at once.
_MAX_DRAWN = 24


def render_html(report: Report, style: Style) -> str:
    """The page; the style plays no part. Only the worst 24 of many runs have charts."""
    runs = by_badness(report.runs)
    several = len(runs) > 1
    drawn = runs[:_MAX_DRAWN]
    parts = [overview(runs, report.failures, len(drawn))] if several else []
    parts += [run_section(run, place, several, place < _MAX_DRAWN) for place, run in enumerate(runs)]
    parts += [] if several else [failed(report.failures)]
    return document(_title(runs), "\n".join(parts), {i: _data(run, several) for i, run in enumerate(drawn)})


def _data(run: RunReport, several: bool) -> Json:
    heat = heat_map(run, several)
    return chart_data(run) | ({} if heat is None else {"heat": heat})


def _title(runs: Sequence[RunReport]) -> str:
    if len(runs) != 1:
        return f"{plural(len(runs), 'run')} - gradtrend"
    return f"{runs[0].verdict.value}: {run_title(runs[0].run, runs[0].name)} - gradtrend"
