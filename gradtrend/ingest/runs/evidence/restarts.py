"""One log that holds several fits one after another -> each of them: where a trainer begins again at the first step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.names import name_metric
from gradtrend.ingest.runs.evidence.borders import Border, borders, prints_total, says_resumed
from gradtrend.ingest.runs.series.steps import with_steps
from gradtrend.model.words import Role

# A fit that another follows has this many rows; with fewer, writers that do not wait for one another are the reason.
_LEAST_ROWS = 3
# Steps that go back more often than this, every few rows, are of writers that do not wait for one another.
_MOST_FITS = 200
_SHORT = 5
# Values that are repeated differ by less: a second print of one run.
_SAME = 1e-3
_REPEATED = 0.95  # of the common steps
_AT_BORDER = 5  # values on either side of a border that are compared, a tenth of the fit where that is less

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]


def fits_in(reading: Reading, chosen: Iterable[str] = ()) -> list[Reading]:
    """The fits that one log holds, with steps of the whole run, in the order of the file; most logs hold one.

    `chosen` are metrics that the user named as gradient norm or loss.
    """
    if (written_together := _interleaved(reading)) is not None:
        return written_together
    fits = []
    for part in _apart(reading, _stepless_starts(reading, chosen)):
        stepped = with_steps(part)
        if stepped.numbered:
            fits.append(stepped)
        elif starts := _starts(stepped, chosen):
            fits += _apart(stepped, starts)
        else:
            fits += _from_first_step(_apart(stepped, _counted_on(stepped, chosen)))
    return fits


def _interleaved(reading: Reading) -> list[Reading] | None:
    """The fits that wrote into one table row by row, None where that is none; how to tell is loaded for tables."""
    if reading.format != "csv":
        return None
    from gradtrend.ingest.runs.evidence.interleaved import fits_apart

    fits = fits_apart(reading)
    return [with_steps(fit) for fit in fits] if len(fits) > 1 else None


def _guide(reading: Reading, chosen: Iterable[str]) -> pl.DataFrame | None:
    """The series by which fits are told apart: a total gradient norm or a loss, that with the most rows."""
    wanted = set(chosen)
    judged = [points for metric, points in reading.series.items() if metric in wanted or _is_judged(metric)]
    return max(judged, key=lambda points: points.height, default=None)


def _is_judged(metric: str) -> bool:
    naming = name_metric(metric)
    return naming.layer is None and naming.role in (Role.GRAD_NORM, Role.LOSS)


def _starts(reading: Reading, chosen: Iterable[str]) -> list[tuple[str, float]]:
    """Where a fit begins, but for the first: the column (`line`, `time`) and value from which its rows count."""
    if all(points["step"].is_sorted() for points in reading.series.values()):
        return []
    guide = _guide(reading, chosen)
    if guide is None or guide["step"].is_sorted():
        return []
    column = next((name for name in ("line", "time") if not guide[name].null_count() and guide[name].is_sorted()), None)
    if column is None:
        return []
    steps, values = guide["step"].to_numpy(), guide["value"].to_numpy()
    back = np.flatnonzero(np.diff(steps) < 0) + 1
    if len(back) > _MOST_FITS or (len(back) > 2 and np.median(np.diff([0, *back, len(steps)])) < _SHORT):
        return []
    places = guide[column].to_list()
    starts = _fresh(steps, values, back)
    if _are_epochs(steps, values, starts):
        return []
    if reading.format == "console" and column == "line":
        starts = [at for at in starts if not says_resumed(reading.path, places[at - 1] + 1, places[at])]
    return [(column, float(places[at])) for at in starts]


def _fresh(steps: _Ints, values: _Floats, back: Iterable[int]) -> list[int]:
    """The rows at which the steps begin again at the first one, with other values than before."""
    starts: list[int] = []
    bounds = [*back, len(steps)]
    begin = 0
    for at, end in pairwise(bounds):
        if at - begin < _LEAST_ROWS:
            continue
        pace = int(np.median(np.abs(np.diff(steps[at:end])))) if end - at > 1 else 0
        first = int(steps[begin:at].min())
        if (steps[at] <= first or steps[at] <= pace) and not _repeats(steps, values, begin, at, end):
            starts.append(at)
            begin = at
    return starts


def _repeats(steps: _Ints, values: _Floats, begin: int, at: int, end: int) -> bool:
    """Whether the rows from `at` say what those from `begin` did: a copy, or another rank."""
    _, i, j = np.intersect1d(steps[begin:at], steps[at:end], return_indices=True)
    if not len(i):
        return False
    x, y = values[begin:at][i], values[at:end][j]
    with np.errstate(invalid="ignore", over="ignore"):  # what is too far apart to be told is not the same
        same = np.isfinite(x - y) & (np.abs(x - y) <= _SAME * np.maximum(np.abs(x), np.abs(y)))
    telling = np.isfinite(x) | np.isfinite(y)
    return bool(telling.sum() > 1 and same[telling].mean() >= _REPEATED and same[telling][-1])


def _are_epochs(steps: _Ints, values: _Floats, starts: Sequence[int]) -> bool:
    """Whether parts of one length go on from one another's values: epochs of one run, whose number is not logged."""
    parts = np.split(np.arange(len(steps)), list(starts))
    if len(parts) < _LEAST_ROWS or len({int(steps[part].max()) for part in parts[:-1]}) > 1:
        return False
    on = [_goes_on(values[a], values[b]) for a, b in pairwise(parts)]
    return sum(on) > len(on) / 2


def _goes_on(before: _Floats, after: _Floats) -> bool:
    """Whether the values after a border begin nearer to where those before it end than to where they began."""
    n = max(1, min(_AT_BORDER, len(before) // 10, len(after)))
    began, ended, begins = (_level(part) for part in (before[:n], before[-n:], after[:n]))
    return abs(begins - ended) < abs(begins - began)


def _level(values: _Floats) -> float:
    """The size of a few values, as a logarithm; inf of what has no number."""
    finite = np.abs(values[np.isfinite(values)])
    return float(np.median(np.log(finite + 1e-30))) if len(finite) else float("inf")


def _counted_on(reading: Reading, chosen: Iterable[str]) -> list[tuple[str, float]]:
    """Where fits begin in a console log whose counter (`12/500`) was taken for one that begins again every epoch."""
    guide = _guide(reading, chosen) if reading.format == "console" else None
    if guide is None or guide["line"].null_count() or not guide["step"].is_sorted():
        return []
    lines, values = guide["line"].to_numpy(), guide["value"].to_numpy()
    if not prints_total(reading.path, int(lines[0])):
        return []
    gaps = np.flatnonzero(np.diff(lines) > 1) + 1
    begin, doubtful = 0, []
    for at in gaps[:_MOST_FITS].tolist():
        if at - begin >= _LEAST_ROWS and not _goes_on(values[begin:at], values[at : at + _AT_BORDER]):
            doubtful.append(at)
            begin = at
    if not doubtful:
        return []
    between = [(int(lines[at - 1]), int(lines[at])) for at in doubtful]
    back = {border.row for border in borders(reading.path, lines.tolist(), between) if border.count_back}
    return [("line", float(lines[at])) for at in doubtful if int(lines[at]) in back]


def _from_first_step(fits: list[Reading]) -> list[Reading]:
    """Fits with steps that all begin where those of the first one do."""
    firsts = [min((int(points["step"][0]) for points in fit.series.values()), default=0) for fit in fits]
    return [
        fit
        if first == firsts[0]
        else replace(
            fit, series={m: p.with_columns(pl.col("step") - (first - firsts[0])) for m, p in fit.series.items()}
        )
        for fit, first in zip(fits, firsts, strict=True)
    ]


def _stepless_starts(reading: Reading, chosen: Iterable[str]) -> list[tuple[str, float]]:
    """Where fits begin in a console log without steps, by what stands between its rows."""
    if reading.format != "console" or not reading.series:
        return []
    guide = _guide(reading, chosen)
    if guide is None or guide["step"].null_count() < guide.height or guide["line"].null_count():
        return []
    lines, values = guide["line"].to_numpy(), guide["value"].to_numpy()
    starts: list[int] = []
    begin = 0
    for border in borders(reading.path, lines.tolist()):
        at = int(np.searchsorted(lines, border.row))
        if at - begin >= _LEAST_ROWS and _is_border(border, values[begin:at], values[at : at + _AT_BORDER]):
            starts.append(at)
            begin = at
    return [("line", float(lines[at])) for at in starts]


def _is_border(border: Border, before: _Floats, after: _Floats) -> bool:
    """Whether a trainer starts again: by its epoch, by a last and a first word, or by one of them and the values."""
    return border.epoch_back or (border.closes and border.opens) or not _goes_on(before, after)


def _apart(reading: Reading, starts: Sequence[tuple[str, float]]) -> list[Reading]:
    """The rows of a reading in parts; what was noticed of the whole stands with the last one, where a log ends."""
    if not starts:
        return [reading]
    column = starts[0][0]
    bounds = [-np.inf, *(value for _, value in starts), np.inf]
    parts = []
    for first, end in pairwise(bounds):
        inside = pl.col(column).is_between(first, end, closed="left")
        cut = {metric: points.filter(inside) for metric, points in reading.series.items()}
        series = {metric: points for metric, points in cut.items() if points.height}
        parts.append(replace(reading, series=series, notes=(), skipped=(), skipped_count=0, goes_on=True))
    parts[-1] = replace(parts[-1], notes=reading.notes, goes_on=reading.goes_on)
    parts[0] = replace(parts[0], skipped=reading.skipped, skipped_count=reading.skipped_count)
    return parts
