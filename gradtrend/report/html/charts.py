"""The charts of one run: what the page's script draws, and the same as a table for those who do not see it."""

from __future__ import annotations

import math

from gradtrend.model.report import RunReport, SeriesReport
from gradtrend.model.series import Outline
from gradtrend.model.words import Role, Trend
from gradtrend.report.html.markup import element, text
from gradtrend.report.html.points import Json, packed_steps, packed_values
from gradtrend.report.wording.chosen import drawn_series, span_of
from gradtrend.report.wording.escape import escape
from gradtrend.report.wording.numbers import counted_in, number, plural

_ROWS = 13  # of the table beside a chart, from the first point to the last
# Below that the rest of the run is worth a word: a norm logged at every tenth step ends a little before the loss.
_ALL_COVERED = 0.98
_NAMES = {Role.GRAD_NORM: "Gradient norm", Role.LOSS: "Loss", Role.LR: "Learning rate", Role.LOSS_SCALE: "Loss scale"}
_KINDS = {Role.GRAD_NORM: "norm", Role.LOSS: "loss", Role.LR: "lr", Role.LOSS_SCALE: "scale"}
_ONSETS = {Trend.EXPLODING: "the rise begins", Trend.VANISHING: "the fall begins", Trend.WARMUP_SPIKE: "the spike"}
# A loss within this ratio is drawn on a linear axis, as people are used to; beyond that its end would be a flat line.
_LOG_RATIO = 30.0


def chart_data(run: RunReport) -> Json:
    """What the script draws of a run, but for its layers."""
    charts = [_chart(s, s.outline) for s in drawn_series(run) if s.outline is not None]
    return {"unit": counted_in(run), "span": list(span_of(run)), "charts": charts}


def figures(run: RunReport, layers: str) -> str:
    """One figure a series: a heading, the place of the chart, what its marks mean, its values as a table.

    The map of the `layers` stands behind the gradient norms.
    """
    drawn = [(s.role, _figure(run, s, s.outline)) for s in drawn_series(run) if s.outline is not None]
    norms = "".join(figure for role, figure in drawn if role is Role.GRAD_NORM)
    return norms + layers + "".join(figure for role, figure in drawn if role is not Role.GRAD_NORM)


def _chart(series: SeriesReport, outline: Outline) -> Json:
    chart: Json = {
        "kind": _KINDS[series.role],
        "name": escape(series.metric),
        "log": _is_log(series, outline),
        "steps": packed_steps(outline.steps),
        "values": packed_values(outline.values),
    }
    if series.role is Role.GRAD_NORM and outline.band is not None:
        chart["band"] = packed_values(outline.band)
    if series.onset_step is not None:
        chart["onset"] = series.onset_step
    if series.role is Role.GRAD_NORM and outline.spikes:
        chart["spikes"] = list(outline.spikes)
    return chart


def _is_log(series: SeriesReport, outline: Outline) -> bool:
    if series.role is not Role.LOSS:
        return series.role in (Role.GRAD_NORM, Role.LOSS_SCALE)
    values = [v for v in outline.values if math.isfinite(v)]
    return bool(values) and min(values) > 0 and max(values) / min(values) > _LOG_RATIO


def _figure(run: RunReport, series: SeriesReport, outline: Outline) -> str:
    name = _NAMES[series.role] if series.layer is None else "Gradient norm of a layer"
    unit = counted_in(run)
    heading = element("h3", f"{name} {element('code', text(series.metric))}")
    facts = element("p", text(_facts(series, outline, unit)), class_="facts") + _table(series, outline, unit)
    plot = element("div", "", class_="plot")
    caption = f"{heading}<output class=readout aria-live=off></output>"
    label = f"{name} {escape(series.metric)}, by {unit}"
    body = f"<figcaption>{caption}</figcaption>{plot}{_legend(series, outline)}<div class=below>{facts}</div>"
    return element("figure", body, class_=f"chart {_KINDS[series.role]}", tabindex=0, role="group", aria_label=label)


def _facts(series: SeriesReport, outline: Outline, unit: str) -> str:
    parts = [plural(series.points, "point")]
    if series.points > len(outline.steps):
        parts[0] = f"{series.points:,} points, drawn by the lowest and the highest of each share of the {unit}s"
    if series.covers is not None and series.covers < _ALL_COVERED and series.role is Role.GRAD_NORM:
        parts.append(f"it covers {series.covers:.0%} of the run")
    if series.role is Role.GRAD_NORM and series.baseline is not None and series.peak is not None:
        parts.append(f"usual level {number(series.baseline)}, peak {number(series.peak)}")
    return "; ".join(parts)


def _legend(series: SeriesReport, outline: Outline) -> str:
    keys = []
    if series.role is Role.GRAD_NORM and outline.band is not None:
        low, high = outline.band
        when = "before the onset" if series.onset_step is not None else "of the run"
        keys.append(("band", f"usual range {when}: {number(low)} to {number(high)}"))
    if series.onset_step is not None:
        keys.append(("onset", f"{_onset(series)}: {series.onset_step}"))
    if series.role is Role.GRAD_NORM and outline.spikes:
        keys.append(("spike", plural(len(outline.spikes), "spike that came back", "spikes that came back")))
    if any(not math.isfinite(v) for v in outline.values):
        first = next(s for s, v in zip(outline.steps, outline.values, strict=True) if not math.isfinite(v))
        keys.append(("bad", f"NaN or inf, first at {first}"))
    if series.role is Role.GRAD_NORM and (series.covers or 1.0) < _ALL_COVERED:
        keys.append(("unseen", "not logged"))
    if series.role is Role.GRAD_NORM and any(v == 0 for v in outline.values):
        keys.append(("zero", "zero, below the axis"))
    items = "".join(element("li", f"<i class={kind}></i>{text(words)}") for kind, words in keys)
    return element("ul", items, class_="legend") if items else ""


def _onset(series: SeriesReport) -> str:
    """What begins at the onset; of a loss it is where it left its best level."""
    return "it leaves its best level" if series.trend is None else _ONSETS.get(series.trend, "it turns")


def _table(series: SeriesReport, outline: Outline, unit: str) -> str:
    rows = "".join(
        f"<tr><td>{outline.steps[i]}</td><td>{number(outline.values[i])}</td><td>{text(what)}</td></tr>"
        for i, what in sorted(_notable(series, outline).items())
    )
    head = f"<tr><th scope=col>{unit}</th><th scope=col>{text(series.metric)}</th><th scope=col>what it is</th></tr>"
    table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
    return f"<details class=values><summary>As a table</summary>{table}</details>"


def _notable(series: SeriesReport, outline: Outline) -> dict[int, str]:
    """Indices of points worth a row, and why: evenly from the first to the last, and all that the chart marks."""
    steps, values = outline.steps, outline.values
    last = len(steps) - 1
    found = {last * place // max(1, _ROWS - 1): "" for place in range(_ROWS)}
    finite = [i for i, v in enumerate(values) if math.isfinite(v)]
    place_of = {step: i for i, step in enumerate(steps)}
    for step in outline.spikes[:_ROWS]:
        if step in place_of:
            found[place_of[step]] = "spike"
    if finite:
        found[min(finite, key=values.__getitem__)] = "lowest"
        found[max(finite, key=values.__getitem__)] = "highest"
    if len(finite) < len(values):
        found[next(i for i, v in enumerate(values) if not math.isfinite(v))] = "first NaN or inf"
    if series.onset_step is not None:
        onset = next((i for i, step in enumerate(steps) if step >= series.onset_step), last)
        found[onset] = _onset(series)
    return found
