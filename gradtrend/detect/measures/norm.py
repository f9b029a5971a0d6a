"""Measures of the shape of a gradient norm: rises, falls, spikes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from gradtrend.detect.curves.levels import median, window_of
from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.shape import Direction
from gradtrend.detect.curves.warmup import EARLY_SHARE
from gradtrend.detect.measures import spans
from gradtrend.detect.measures.measure import Measure


def _decades_above_baseline(curve: Curve) -> float | None:
    """How far the end of the run lies above its lowest settled level."""
    return None if (rise := curve.rise) is None else rise.decades


def _decades_above_early(curve: Curve) -> float | None:
    """How far the end lies above the level that the run had reached after its first 15 %."""
    if (shape := curve.shape) is None:
        return None
    first = int(EARLY_SHARE * shape.points)
    return shape.end - median(shape.y[first : first + window_of(shape.points)])


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
    """The median of the norm over the run."""
    return None if curve.shape is None else float(10 ** median(curve.shape.y))


def _early_spike_decades(curve: Curve) -> float | None:
    """Height of the highest spike during warm-up or just after it, above the local level."""
    return None if curve.shape is None else max((s.decades for s in curve.early_spikes), default=0.0)


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
    "decades_beyond_history": Measure(
        _decades_beyond_history, "decades", "rise of the end over all seen before", spans.whole, change=Direction.UP
    ),
    "rise_over_noise": Measure(
        _rise_over_noise, "sigma", "rise over the log's own scatter", spans.whole, change=Direction.UP
    ),
    "decades_fallen": Measure(
        _decades_fallen, "decades", "fall of the end below the highest settled level", spans.fall, change=Direction.DOWN
    ),
    "decades_below_history": Measure(
        _decades_below_history, "decades", "fall of the end below all seen before", spans.whole, change=Direction.DOWN
    ),
    "fall_start": Measure(_fall_start, "share", "where in the run the fall began", spans.whole, change=Direction.DOWN),
    "fall_duration": Measure(
        _fall_duration, "share", "time to half of the fall, of the run", spans.whole, change=Direction.DOWN
    ),
    "points_low": Measure(
        _points_low, "points", "points in the lower half of the fall", spans.whole, change=Direction.DOWN
    ),
    "typical_norm": Measure(_typical_norm, "", "median of the norm", spans.whole),
    "early_spike_decades": Measure(
        _early_spike_decades, "decades", "highest spike in warm-up or just after", spans.early_spikes
    ),
    "late_spike_decades": Measure(_late_spike_decades, "decades", "highest spike after warm-up", spans.late_spikes),
    "late_spikes": Measure(_late_spikes, "spikes", "spikes after warm-up that came back", spans.late_spikes),
    "excursion_decades": Measure(
        _excursion_decades, "decades", "longest high stretch over what is before and after", spans.whole
    ),
    "spike_rate": Measure(
        _spike_rate, "share", "points 7 sigma over a rolling window", spans.whole, "fewer than 1000 points"
    ),
}
