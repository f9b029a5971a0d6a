"""Measures of the shape of a gradient norm: rises, falls, spikes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from gradtrend.detect.curves.hump import hump_height
from gradtrend.detect.curves.levels import median, window_of
from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.shape import Direction
from gradtrend.detect.curves.warmup import EARLY_SHARE
from gradtrend.detect.measures import spans
from gradtrend.detect.measures.measure import Measure

# Two values before and one after.
_LEAST_POINTS = 3


def _decades_above_baseline(curve: Curve) -> float | None:
    """How far the end of the run lies above its lowest settled level."""
    return None if (rise := curve.rise) is None else rise.decades


def _decades_above_early(curve: Curve) -> float | None:
    """How far the end lies above the level that the run had reached after its first 15 %."""
    if (shape := curve.shape) is None:
        return None
    first = int(EARLY_SHARE * shape.points)
    return shape.end - median(shape.y[first : first + window_of(shape.points)])


def _decades_above_first(curve: Curve) -> float | None:
    """How far the end of the run lies above its first two values, the higher of them."""
    return None if (shape := curve.shape) is None or shape.points < _LEAST_POINTS else shape.climb.decades


def _first_over_noise(curve: Curve) -> float | None:
    """The same in standard deviations of the log's own scatter."""
    return None if (shape := curve.shape) is None or shape.points < _LEAST_POINTS else shape.climb.decades / shape.noise


def _decades_of_last_points(curve: Curve) -> float | None:
    """How far the last point, or the last two, lie above everything before them; 0 where they do not."""
    if (shape := curve.shape) is None or shape.points < _LEAST_POINTS:
        return None
    series, y = curve.series, shape.y
    if series is not None and int(shape.steps[-1]) != int(series.steps[series.finite][-1]):
        return 0.0  # the log goes on, below zero or at it
    return max(0.0, float(y[-1] - y[:-1].max()), float(y[-2:].min() - y[:-2].max()))


def _last_over_noise(curve: Curve) -> float | None:
    """The same in standard deviations of the log's own scatter."""
    higher = _decades_of_last_points(curve)
    return None if higher is None or curve.shape is None else higher / curve.shape.noise


def _decades_above_typical(curve: Curve) -> float | None:
    """How far the end of the run lies above the median of the run."""
    return None if (shape := curve.shape) is None else shape.end - median(shape.y)


def _decades_beyond_history(curve: Curve) -> float | None:
    """How far the end lies above all but the highest 2 % of what was logged before the rise."""
    return None if (rise := curve.rise) is None or math.isinf(rise.beyond) else rise.beyond


def _rise_over_noise(curve: Curve) -> float | None:
    """The rise in standard deviations of the log's own scatter."""
    return None if curve.shape is None else curve.shape.rise.decades / curve.shape.noise


def _decades_fallen(curve: Curve) -> float | None:
    """How far the end of the run lies below its highest settled level."""
    return None if (fall := curve.fall) is None else fall.decades


def _fall_start(curve: Curve) -> float | None:
    """Where in the run the fall began, as a share of its points."""
    return None if (shape := curve.shape) is None else shape.fall.onset / shape.points


def _fall_duration(curve: Curve) -> float | None:
    """How long the fall took until it was half done, as a share of the run."""
    if (shape := curve.shape) is None or shape.fall.held_from >= shape.points:
        return None
    return (shape.fall.held_from - shape.fall.onset) / shape.points


def _points_low(curve: Curve) -> float | None:
    """How many points lie in the lower half of the fall, to the end."""
    return None if (shape := curve.shape) is None else float(shape.points - shape.fall.held_from)


def _decades_below_history(curve: Curve) -> float | None:
    """How far the end lies below all but the lowest 2 % of what was logged before the fall."""
    return None if (fall := curve.fall) is None or math.isinf(fall.beyond) else fall.beyond


def _typical_norm(curve: Curve) -> float | None:
    """The median of the norm over the run; None for a total made of layers, which need not be that of the model."""
    return None if curve.run.total_is_made or curve.shape is None else float(10 ** median(curve.shape.y))


def _early_spike_decades(curve: Curve) -> float | None:
    """Height of the highest spike during warm-up or just after it, above the local level."""
    return None if curve.shape is None else max((s.decades for s in curve.early_spikes), default=0.0)


def _early_hump_decades(curve: Curve) -> float | None:
    """Height of a ragged hump of five points or more during warm-up, above what is before and after it."""
    if (shape := curve.shape) is None:
        return None
    return hump_height(shape.y, int(np.searchsorted(shape.steps, curve.early_until, side="right")))


def _late_spike_decades(curve: Curve) -> float | None:
    """Height of the highest spike after warm-up that came back, above the local level."""
    return None if curve.shape is None else max((s.decades for s in curve.late_spikes), default=0.0)


def _late_spikes(curve: Curve) -> float | None:
    """How many spikes after warm-up came back."""
    return None if curve.shape is None else float(len(curve.late_spikes))


def _excursion_decades(curve: Curve) -> float | None:
    """How far the highest settled level after warm-up lies above both the lowest level before it and the end."""
    if curve.shape is None:
        return None
    shape, levels = curve.shape, curve.shape.levels
    late = np.flatnonzero(shape.steps[: len(levels)] > curve.early_until)
    if not len(late):
        return 0.0
    top = int(late[np.argmax(levels[late])])
    return float(min(levels[top] - levels[: top + 1].min(), levels[top] - shape.end))


def _spike_rate(curve: Curve) -> float | None:
    """Share of the points at least 7 standard deviations above the rolling mean of the last 1000 points.

    The spike score of the OLMo 2 report (2501.00656, section on training stability); None under 1000 points.
    """
    if curve.shape is None or curve.shape.points < 1000:
        return None
    norm, values = pl.col("norm"), 10**curve.shape.y
    window = pl.DataFrame({"norm": values}).select(
        mean=norm.rolling_mean(1000, min_samples=100), deviation=norm.rolling_std(1000, min_samples=100)
    )
    mean, deviation = window["mean"].to_numpy(), window["deviation"].to_numpy()
    with np.errstate(invalid="ignore"):
        return float((values[1:] > mean[:-1] + 7 * deviation[:-1]).mean())


MEASURES: Mapping[str, Measure] = {
    "decades_above_baseline": Measure(
        _decades_above_baseline, "decades", "rise of the end over the lowest level", spans.rise, change=Direction.UP
    ),
    "decades_above_early": Measure(
        _decades_above_early, "decades", "rise of the end over the level after 15 %", spans.whole, change=Direction.UP
    ),
    "decades_above_first": Measure(
        _decades_above_first, "decades", "end over the first two values", spans.climb, change=Direction.FROM_FIRST
    ),
    "first_over_noise": Measure(
        _first_over_noise,
        "sigma",
        "end over the first two values",
        spans.climb,
        change=Direction.FROM_FIRST,
    ),
    "decades_of_last_points": Measure(
        _decades_of_last_points, "decades", "the last points over all before them", spans.last_points
    ),
    "last_over_noise": Measure(_last_over_noise, "sigma", "the last points over all before them", spans.last_points),
    "decades_above_typical": Measure(
        _decades_above_typical, "decades", "end over the median", spans.rise, change=Direction.UP
    ),
    "decades_beyond_history": Measure(
        _decades_beyond_history, "decades", "rise of the end over all seen before", spans.whole, change=Direction.UP
    ),
    "rise_over_noise": Measure(
        _rise_over_noise, "sigma", "rise of the end over the lowest level", spans.whole, change=Direction.UP
    ),
    "decades_fallen": Measure(
        _decades_fallen, "decades", "fall of the end below the highest settled level", spans.fall, change=Direction.DOWN
    ),
    "decades_below_history": Measure(
        _decades_below_history, "decades", "fall of the end below all seen before", spans.whole, change=Direction.DOWN
    ),
    "fall_start": Measure(_fall_start, "share", "where in the run the fall began", spans.whole, change=Direction.DOWN),
    "fall_duration": Measure(
        _fall_duration, "share", "how much of the run the fall takes to its half", spans.whole, change=Direction.DOWN
    ),
    "points_low": Measure(
        _points_low, "points", "points in the lower half of the fall", spans.whole, change=Direction.DOWN
    ),
    "typical_norm": Measure(_typical_norm, "", "median of the norm", spans.whole),
    "early_spike_decades": Measure(
        _early_spike_decades, "decades", "highest spike in warm-up or just after", spans.early_spikes
    ),
    "early_hump_decades": Measure(
        _early_hump_decades, "decades", "ragged hump in warm-up over what is beside it", spans.whole
    ),
    "late_spike_decades": Measure(_late_spike_decades, "decades", "highest spike after warm-up", spans.late_spikes),
    "late_spikes": Measure(_late_spikes, "spikes", "spikes after warm-up that came back", spans.late_spikes),
    "excursion_decades": Measure(
        _excursion_decades, "decades", "highest stretch over what is before and after", spans.whole
    ),
    "spike_rate": Measure(
        _spike_rate, "share", "points 7 sigma over a rolling window", spans.whole, "fewer than 1000 points"
    ),
}
