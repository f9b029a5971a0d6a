"""The curves at the head of a run's block: the gradient norm that decided, and the loss."""

from __future__ import annotations

from gradtrend.model.numbers import times
from gradtrend.model.report import RunReport, SeriesReport
from gradtrend.model.words import Role, Trend
from gradtrend.report.text.sparkline import fit, sparkline
from gradtrend.report.wording.escape import escape, shorten
from gradtrend.report.wording.numbers import counted_in, number, plural, steps
from gradtrend.report.wording.style import Style
from gradtrend.report.wording.subject import deciding_series

_LABEL = 28  # columns for a metric's name; longer ones are cut in the middle
_CHANGES = {Trend.EXPLODING: "rises", Trend.VANISHING: "falls", Trend.WARMUP_SPIKE: "spikes"}
_MIN_CURVE = 10  # a curve is never thinner than this, even where the terminal is


def curve_lines(run: RunReport, style: Style) -> list[str]:
    """The sparklines of norm and loss, and the numbers of the norm, or where there is none of the loss."""
    norm = deciding_series(run)
    loss = next((s for s in run.series if s.role is Role.LOSS and s.sketch), None)
    drawn = [series for series in (norm, loss) if series is not None]
    if not drawn:
        return []
    names = [shorten(escape(series.metric), _LABEL, style.sign("…", "~")) for series in drawn]
    column = max(len(name) for name in names)
    room = max(_MIN_CURVE, style.width - column - 4)
    lines = [
        f"  {name:<{column}}  {sparkline(fit(series.sketch, room), style)}".rstrip()
        for name, series in zip(names, drawn, strict=True)
    ]
    return [*lines, style.paint(f"  {_numbers(drawn[0], counted_in(run))}", "dim")]


def _numbers(series: SeriesReport, unit: str) -> str:
    parts = [plural(series.points, "point")]
    if series.first_step is not None:
        parts[0] += f", {steps(series.first_step, series.last_step, unit)}"
    if series.baseline is not None and series.peak is not None:
        ratio = "" if series.decades is None else f" ({times(series.decades)})"
        parts.append(f"usual level {number(series.baseline)}, peak {number(series.peak)}{ratio}")
    if series.onset_step is not None:
        parts.append(f"{_CHANGES.get(series.trend or Trend.STABLE, 'changes')} from {unit} {series.onset_step} on")
    return "; ".join(parts)
