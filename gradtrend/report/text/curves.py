"""The curves at the head of a run's block: the gradient norm that decided, and the loss."""

from __future__ import annotations

from collections.abc import Sequence

from gradtrend.model.numbers import times
from gradtrend.model.report import RunReport, SeriesReport
from gradtrend.model.words import Role, Trend
from gradtrend.report.text.lines import wrapped
from gradtrend.report.text.sparkline import fit, sparkline
from gradtrend.report.wording.escape import escape
from gradtrend.report.wording.numbers import counted_in, number, plural, steps
from gradtrend.report.wording.style import Style
from gradtrend.report.wording.subject import deciding_series
from gradtrend.report.wording.width import fitted, padded, width_of

_LABEL = 28  # columns for a metric's name; longer ones are cut in the middle
_CHANGES = {Trend.EXPLODING: "rises", Trend.VANISHING: "falls", Trend.WARMUP_SPIKE: "spikes"}
_MIN_CURVE = 10  # a curve is never thinner than this, even where the terminal is
_WIDEST = 60  # columns: as many values as a sketch has


def curve_lines(run: RunReport, style: Style) -> list[str]:
    """The sparklines of norm, loss and learning rate over one axis of steps, each with its least and largest value; and
    the numbers of the norm, or where there is none of the loss.
    """
    norm = deciding_series(run)
    others = [next((s for s in run.series if s.role is role and s.sketch), None) for role in (Role.LOSS, Role.LR)]
    drawn = [series for series in (norm, *others) if series is not None]
    if not drawn or drawn[0].role is Role.LR:
        return []
    unit = counted_in(run)
    lines = _picture(drawn, unit, style)
    return [*lines, *wrapped(_numbers(drawn[0], unit), style)]


def _picture(drawn: Sequence[SeriesReport], unit: str, style: Style) -> list[str]:
    names = [fitted(escape(series.metric), _LABEL, style.sign("…", "~")) for series in drawn]
    axes = [_axis(series) for series in drawn]
    column = max(width_of(name) for name in (*names, "steps"))
    room = max(_MIN_CURVE, style.width - column - 6 - max(map(len, axes)))
    span = _span(drawn)
    room = min(room, max(_columns_of(series, span) for series in drawn))
    placed = [_placed(series, span, room) for series in drawn]
    lines = [
        f"  {padded(name, column)}  {_curve(values, room, style)}  {style.paint(axis, 'dim')}".rstrip()
        for name, values, axis in zip(names, placed, axes, strict=True)
    ]
    if span is None:
        return lines
    return [*lines, *_below(drawn, span, room, column, unit, style)]


def _curve(values: Sequence[float | None], room: int, style: Style) -> str:
    """The sparkline of the columns in which a series is logged, blanks in the others."""
    first = next((i for i, v in enumerate(values) if v is not None), 0)
    logged = [v for v in values if v is not None]
    return " " * first + sparkline(logged, style) + " " * (room - first - len(logged))


def _axis(series: SeriesReport) -> str:
    """`23 to 1.3e19`, the least and the largest finite value of a series, which its curve of the largest of each share
    need not show; one number where these are as good as one.
    """
    ends = [value for value in (series.lowest, series.peak) if value is not None]
    return " to ".join(dict.fromkeys(map(_short, ends)))


def _short(value: float) -> str:
    return number(float(f"{value:.2g}"))


def _span(drawn: Sequence[SeriesReport]) -> tuple[int, int] | None:
    """The steps from the first to the last of all that is drawn."""
    firsts = [s.first_step for s in drawn if s.first_step is not None]
    lasts = [s.last_step for s in drawn if s.last_step is not None]
    return (min(firsts), max(lasts)) if firsts and lasts else None


def _columns_of(series: SeriesReport, span: tuple[int, int] | None) -> int:
    """As many columns as let each value of the sketch have its own."""
    if span is None or series.first_step is None or series.last_step is None:
        return len(series.sketch)
    own = series.last_step - series.first_step + 1
    return min(_WIDEST, round(len(series.sketch) * (span[1] - span[0] + 1) / own))


def _place(step: int, span: tuple[int, int], room: int) -> int:
    """The column of a step."""
    return max(0, min(room - 1, (step - span[0]) * room // (span[1] - span[0] + 1)))


def _placed(series: SeriesReport, span: tuple[int, int] | None, room: int) -> list[float | None]:
    """The values of a series in `room` columns over a span of steps, None in those where it is not logged."""
    if span is None or series.first_step is None or series.last_step is None:
        return list(fit(series.sketch, room))
    first, last = _place(series.first_step, span, room), _place(series.last_step, span, room)
    count = last - first + 1
    values = fit(series.sketch, count)
    spread = [values[i * len(values) // count] for i in range(count)] if values else []
    return [None] * first + spread + [None] * (room - first - len(spread))


def _below(
    drawn: Sequence[SeriesReport], span: tuple[int, int], room: int, column: int, unit: str, style: Style
) -> list[str]:
    """The marks below the curves, the onset and single non-finite values, and the axis of steps with its ends."""
    marks = [" "] * room
    words = []
    if _mark_gaps(marks, drawn, span, style):
        words.append(f"{style.sign('✕', 'x')} NaN/inf")
    onset = next((s.onset_step for s in drawn if s.onset_step is not None), None)
    if onset is not None:
        marks[_place(onset, span, room)] = style.sign("▲", "^")
        words.insert(0, f"{style.sign('▲', '^')} onset, {unit} {onset}")
    lines = []
    if words:
        lines.append(f"  {'':<{column}}  {''.join(marks)}  {', '.join(words)}".rstrip())
    ends = [str(span[0]), str(span[1])] if span[0] != span[1] else [str(span[0]), ""]
    between = room - len(ends[0]) - len(ends[1]) - 2
    line = style.sign("─", "-") * between
    steps_axis = (
        f"{ends[0]} {line} {ends[1]}" if between > 0 else f"{ends[0]} {style.sign('…', '..')} {ends[1]}".strip()
    )
    lines.append(f"  {padded(f'{unit}s', column)}  {padded(steps_axis, room)}  (log scales)".rstrip())
    return [*lines[:-1], style.paint(lines[-1], "dim")]


def _mark_gaps(marks: list[str], drawn: Sequence[SeriesReport], span: tuple[int, int], style: Style) -> bool:
    """Mark where single values are non-finite, which a curve of the largest ones does not show."""
    found = False
    for series in drawn:
        if series.first_step is None or series.last_step is None:
            continue
        share = (series.last_step - series.first_step + 1) / max(len(series.sketch), 1)
        for gap in series.gaps:
            marks[_place(series.first_step + int((gap + 0.5) * share), span, len(marks))] = style.sign("✕", "x")
            found = True
    return found


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
