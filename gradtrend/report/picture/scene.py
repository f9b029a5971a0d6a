"""What is where in the picture of a run: shapes and words in pixels, whoever draws them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from gradtrend.model.report import Report, RunReport, SeriesReport
from gradtrend.model.series import Outline
from gradtrend.model.words import Role, Verdict
from gradtrend.report.picture.axes import Axes, log_range, log_ticks, step_label, step_ticks
from gradtrend.report.wording.brief import by_badness, deciding_loss
from gradtrend.report.wording.chosen import span_of
from gradtrend.report.wording.escape import cut_short, escape, shorten
from gradtrend.report.wording.numbers import counted_in, number, plural, share
from gradtrend.report.wording.subject import deciding_series, grouped, run_title

WIDTH, HEIGHT = 960, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 936, 96, 368
_TITLE, _WHY, _LEGEND = 84, 128, 150  # characters that have room in their sizes
_CROSS, _NEAR, _FAR = 4, 12, 48  # half the size of the sign for NaN; how near the next may be, how near in a stretch
_ALL_COVERED = 0.98


@dataclass(frozen=True, slots=True)
class Box:
    """A filled rectangle; `look` names its colour."""

    x: float
    y: float
    width: float
    height: float
    look: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points."""

    points: tuple[tuple[float, float], ...]
    look: str
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """Words (escaped for a terminal) on the baseline y; `anchor` is what x is of them: start, middle or end."""

    x: float
    y: float
    text: str
    look: str
    size: int = 13
    anchor: str = "start"
    bold: bool = False


Shape = Box | Line | Words


def scene_of(report: Report) -> tuple[Shape, ...]:
    """The gradient norm of the run, of several that of the worst; the loss where that diverges or no norm is logged;
    words alone without either.
    """
    runs = by_badness(report.runs)
    if not runs:
        return (Words(_LEFT, _TOP, "No run could be judged.", "ink", 20),)
    run = runs[0]
    drawn = _drawn(run)
    shapes = _head(run, len(runs))
    if drawn is None or drawn.outline is None:
        return (*shapes, Words(_LEFT, (_TOP + _BOTTOM) / 2, "No gradient norm is logged.", "quiet", 16))
    return (*shapes, *_chart(run, drawn, drawn.outline))


def _drawn(run: RunReport) -> SeriesReport | None:
    """The series that shows best what the run is like; a loss only where all of it has a place on a log axis."""
    norm, loss = deciding_series(run), deciding_loss(run)
    wanted = norm is None or run.verdict is Verdict.DIVERGING
    if loss is None or loss.outline is None or not wanted:
        return norm
    if not all(value > 0 for value in loss.outline.values if math.isfinite(value)):
        return norm
    return replace(loss, outline=replace(loss.outline, band=None))  # a loss is to leave the range that is usual for it


def _head(run: RunReport, runs: int) -> list[Shape]:
    groups = grouped(run)
    sure = "" if run.confidence is None else f" (confidence {share(run.confidence)})"
    of = "" if runs == 1 else f", the worst of {runs} runs"
    title = shorten(escape(run_title(run.run, run.name)), _TITLE)
    why = cut_short(escape(groups[0][0].message), _WHY) if groups else "Nothing was found."
    return [
        Words(24, 34, title, "ink", 19, bold=True),
        Words(24, 58, f"{run.verdict.value}{sure}{of}", _tone(run), 15, bold=True),
        Words(24, 80, why, "quiet", 14),
    ]


def _tone(run: RunReport) -> str:
    return {"stable": "good", "warmup-spike": "fair", "undetermined": "fair"}.get(run.verdict.value, "bad")


def _chart(run: RunReport, norm: SeriesReport, outline: Outline) -> list[Shape]:
    first, last = span_of(run)
    low, high = log_range([*outline.values, *(outline.band or ())])
    axes = Axes(first, last, low, high, _LEFT, _RIGHT, _TOP, _BOTTOM)
    shapes = _under(norm, outline, axes) + _grid(axes, counted_in(run))
    thin = 1.8 if len(outline.steps) <= 800 else 1.2
    shapes += [Line(tuple(part), "line", thin) for part in _parts(outline, axes)]
    return shapes + _over(norm, outline, axes) + [_legend(norm, outline)]


def _under(norm: SeriesReport, outline: Outline, axes: Axes) -> list[Shape]:
    shapes: list[Shape] = []
    if outline.band is not None:
        bottom, top = (axes.y(value) for value in outline.band)
        shapes.append(Box(_LEFT, top, _RIGHT - _LEFT, max(2, bottom - top), "band"))
    for start, end in ((axes.first, outline.steps[0]), (outline.steps[-1], axes.last)):
        if (norm.covers or 1.0) < _ALL_COVERED and end > start:
            shapes.append(Box(axes.x(start), _TOP, axes.x(end) - axes.x(start), _BOTTOM - _TOP, "unseen"))
    steps = outline.steps
    for i, value in enumerate(outline.values):
        if not math.isfinite(value):
            after = axes.x(steps[min(i + 1, len(steps) - 1)])
            shapes.append(Box(axes.x(steps[i]) - 1, _TOP, max(2, after - axes.x(steps[i])), _BOTTOM - _TOP, "wash"))
    return _joined(shapes)


def _joined(shapes: list[Shape]) -> list[Shape]:
    """Washes that touch as one: 1,000 translucent boxes side by side show their seams."""
    found: list[Shape] = []
    for shape in shapes:
        before = found[-1] if found else None
        touches = isinstance(shape, Box) and isinstance(before, Box) and shape.look == before.look == "wash"
        if touches and isinstance(shape, Box) and isinstance(before, Box) and shape.x <= before.x + before.width + 1:
            found[-1] = Box(before.x, before.y, shape.x + shape.width - before.x, before.height, "wash")
        else:
            found.append(shape)
    return found


def _grid(axes: Axes, unit: str) -> list[Shape]:
    shapes: list[Shape] = []
    for value in log_ticks(axes.low, axes.high):
        y = axes.y(value)
        shapes.append(Line(((_LEFT, y), (_RIGHT, y)), "grid"))
        shapes.append(Words(_LEFT - 8, y + 4, number(value), "quiet", anchor="end"))
    for step in step_ticks(axes.first, axes.last):
        shapes.append(Line(((axes.x(step), _BOTTOM), (axes.x(step), _BOTTOM + 4)), "quiet"))
        shapes.append(Words(axes.x(step), _BOTTOM + 20, step_label(step), "quiet", anchor="middle"))
    shapes.append(Line(((_LEFT, _BOTTOM), (_RIGHT, _BOTTOM)), "quiet"))
    shapes.append(Words(_RIGHT, _BOTTOM + 38, unit, "quiet", anchor="end"))
    return shapes


def _parts(outline: Outline, axes: Axes) -> list[list[tuple[float, float]]]:
    """The line, broken where a value is not finite; a point by itself as a short dash."""
    parts: list[list[tuple[float, float]]] = [[]]
    for step, value in zip(outline.steps, outline.values, strict=True):
        if math.isfinite(value):
            parts[-1].append((axes.x(step), axes.y(value)))
        elif parts[-1]:
            parts.append([])
    return [part if len(part) > 1 else _dash(*part[0]) for part in parts if part]


def _dash(x: float, y: float) -> list[tuple[float, float]]:
    return [(x - 1.5, y), (x + 1.5, y)]


def _over(norm: SeriesReport, outline: Outline, axes: Axes) -> list[Shape]:
    shapes: list[Shape] = []
    if norm.onset_step is not None:
        x = axes.x(norm.onset_step)
        shapes.append(Line(((x, _TOP), (x, _BOTTOM)), "onset", 1.5, dashed=True))
        room = x > _LEFT + 130
        anchor = "end" if room else "start"
        low = _height_at(outline, axes, norm.onset_step) > (_TOP + _BOTTOM) / 2
        place = (x - 6 if room else x + 6, _TOP + 28 if low else _BOTTOM - 10)
        shapes.append(Words(*place, f"onset {norm.onset_step}", "onset", 13, anchor, True))
    return shapes + _crosses(outline, axes)


def _height_at(outline: Outline, axes: Axes, step: int) -> float:
    known = (v for s, v in zip(outline.steps, outline.values, strict=True) if s >= step and math.isfinite(v))
    return axes.y(next(known, 0.0))


def _crosses(outline: Outline, axes: Axes) -> list[Shape]:
    """A sign where values are not finite: at the first of a stretch, and along it."""
    shapes: list[Shape] = []
    before, last = -math.inf, -2
    for i, value in enumerate(outline.values):
        if math.isfinite(value):
            continue
        x = min(_RIGHT - _CROSS, max(_LEFT + _CROSS, axes.x(outline.steps[i])))
        apart, last = (_FAR if i == last + 1 else _NEAR), i
        if x - before < apart:
            continue
        before, y = x, _TOP + 3 * _CROSS
        for side in (-1, 1):
            ends = ((x - _CROSS, y - side * _CROSS), (x + _CROSS, y + side * _CROSS))
            shapes.append(Line(ends, "bad", 1.8))
    return shapes


def _legend(norm: SeriesReport, outline: Outline) -> Words:
    what = " (the loss)" if norm.role is Role.LOSS else ""
    parts = [escape(norm.metric) + what, plural(norm.points, "point")]
    if outline.band is not None:
        before = " before the onset" if norm.onset_step is not None else ""
        parts.append(f"shaded: usual range{before}, {number(outline.band[0])} to {number(outline.band[1])}")
    if any(not math.isfinite(v) for v in outline.values):
        parts.append("red: NaN or inf")
    if norm.covers is not None and norm.covers < _ALL_COVERED:
        parts.append(f"grey: not logged (it covers {norm.covers:.0%} of the run)")
    return Words(24, HEIGHT - 14, shorten("; ".join(parts), _LEGEND), "quiet", 12)
