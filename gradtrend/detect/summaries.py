"""How each series is shown in the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gradtrend.detect.curves.levels import median, pace_of
from gradtrend.detect.curves.run import RunCurves
from gradtrend.detect.curves.series import Series
from gradtrend.detect.rules.evaluate import Check
from gradtrend.detect.verdict import Judged
from gradtrend.model.report import SeriesReport
from gradtrend.model.words import Trend, Verdict

if TYPE_CHECKING:
    from gradtrend.model.series import Outline

_SKETCH_POINTS = 60  # a sparkline's width on an 80-column terminal
_LAYER_SHARE = 8  # of the points that a series is drawn in a layer needs this part: it is one row of a map, not a chart


def summaries(
    run: RunCurves, judged: Sequence[Judged], checks: Sequence[Check], points: int = 0
) -> Iterator[SeriesReport]:
    """Every series that counts, total norms with their trend, a loss that diverged with its onset.

    With an outline of each in about that many points where `points` is not 0.
    """
    trends = {id(j.series): j for j in judged}
    onsets = {
        id(check.curve.series): check.curve.divergence.onset
        for check in checks
        if check.fired and check.rule.verdict is Verdict.DIVERGING and check.curve.divergence is not None
    }
    for series in run.series:
        report = _one(run, series, trends.get(id(series)))
        if id(series) in onsets:
            report = replace(report, onset_step=onsets[id(series)])
        yield replace(report, outline=_outline(run, series, report, points)) if points else report


def with_outlines(run: RunCurves, reports: Sequence[SeriesReport], points: int) -> Iterator[SeriesReport]:
    """Series that were judged without outlines, with one each; as they are where the run has them no more."""
    logged = {(series.metric, series.layer): series for series in run.series}
    for report in reports:
        series = logged.get((report.metric, report.layer))
        yield report if series is None else replace(report, outline=_outline(run, series, report, points))


def _outline(run: RunCurves, series: Series, report: SeriesReport, points: int) -> Outline | None:
    from gradtrend.detect.outlines import outline_of  # most reports draw no chart

    drawn = points if series.layer is None else max(1, points // _LAYER_SHARE)
    return outline_of(run.curve(series), report.onset_step, drawn)


def _one(run: RunCurves, series: Series, judged: Judged | None) -> SeriesReport:
    finite = series.finite_values
    baseline = _baseline(run, series, judged)
    peak = float(finite.max()) if len(finite) else None
    decades = None
    if judged is not None and baseline and peak and baseline > 0 and peak > 0:
        decades = round(float(np.log10(peak / baseline)), 3)
    sketch, gaps = _sketch(series)
    return SeriesReport(
        metric=series.metric,
        role=series.role,
        layer=series.layer,
        points=len(series),
        first_step=int(series.steps[0]),
        last_step=int(series.steps[-1]),
        trend=judged.trend if judged is not None else None,
        onset_step=judged.onset_step if judged is not None else None,
        baseline=baseline,
        peak=peak,
        decades=decades,
        sketch=sketch,
        covers=None if (covers := run.covers(series)) is None else round(covers, 4),
        gaps=gaps,
        last=float(series.values[-1]),
        lowest=float(finite.min()) if len(finite) else None,
    )


def _baseline(run: RunCurves, series: Series, judged: Judged | None) -> float | None:
    """The level the norm left, or its typical level where it left none."""
    shape = run.curve(series).shape if judged is not None else None
    if judged is None or shape is None:
        finite = series.finite_values
        return median(finite) if len(finite) else None
    if judged.trend is Trend.EXPLODING:
        return float(10**shape.baseline)
    if judged.trend is Trend.VANISHING:
        return float(10**shape.highest)
    return float(10 ** median(shape.y))


def _sketch(series: Series) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """The values of a sparkline, and the places where some of a share are non-finite (`SeriesReport`).

    As many shares as steps are usually logged, so that few points stand side by side.
    """
    steps, values = series.steps, series.values
    span = int(steps[-1]) - int(steps[0])
    count = min(_SKETCH_POINTS, round(span / max(pace_of(steps) or 1.0, 1.0)) + 1)
    # The steps of a share are evenly apart: the first and the last logged lie in its first and its last share.
    shares = np.minimum(((steps - steps[0]) / max(span, 1) * count).astype(np.int64), count - 1)
    starts = np.flatnonzero(np.diff(shares, prepend=-1))
    finite = np.isfinite(values)
    held = np.fmax.reduceat(np.where(finite, values, np.nan), starts)
    some = np.logical_or.reduceat(~finite, starts)
    none = np.isnan(held)
    held[none] = np.fmax.reduceat(values, starts)[none]
    logged = shares[starts]
    gaps = logged[some & ~none]
    return tuple(held[np.searchsorted(logged, np.arange(count), side="right") - 1].tolist()), tuple(gaps.tolist())
