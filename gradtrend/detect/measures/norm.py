"""Measures of the shape of a gradient norm: rises, falls, spikes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from gradtrend.detect.curves.case import Case
from gradtrend.detect.curves.levels import median, window_of
from gradtrend.detect.curves.warmup import EARLY_SHARE
from gradtrend.detect.measures.measure import Measure


def decades_above_baseline(case: Case) -> float | None:
    """How far the end of the run lies above its lowest settled level."""
    return None if (rise := case.rise) is None else rise.decades


def decades_above_early(case: Case) -> float | None:
    """How far the end lies above the level that the run had reached after its first 15 %."""
    if (shape := case.shape) is None:
        return None
    first = int(EARLY_SHARE * shape.points)
    return shape.end - median(shape.y[first : first + window_of(shape.points)])


def decades_beyond_history(case: Case) -> float | None:
    """How far the end lies above all but the highest 2 % of what was logged before the rise."""
    return None if (rise := case.rise) is None or math.isinf(rise.beyond) else rise.beyond


def rise_over_noise(case: Case) -> float | None:
    """The rise in standard deviations of the log's own scatter."""
    return None if case.shape is None else case.shape.rise.decades / case.shape.noise


def decades_fallen(case: Case) -> float | None:
    """How far the end of the run lies below its highest settled level."""
    return None if (fall := case.fall) is None else fall.decades


def fall_start(case: Case) -> float | None:
    """Where in the run the fall began, as a share of its points."""
    if (fall := case.fall) is None or case.shape is None:
        return None
    return fall.onset / case.shape.points


def fall_duration(case: Case) -> float | None:
    """How long the fall took until it was half done, as a share of the run."""
    if (fall := case.fall) is None or case.shape is None or fall.held_from >= case.shape.points:
        return None
    return (fall.held_from - fall.onset) / case.shape.points


def points_low(case: Case) -> float | None:
    """How many points lie in the lower half of the fall, to the end."""
    if (fall := case.fall) is None or case.shape is None:
        return None
    return float(case.shape.points - fall.held_from)


def decades_below_history(case: Case) -> float | None:
    """How far the end lies below all but the lowest 2 % of what was logged before the fall."""
    return None if (fall := case.fall) is None or math.isinf(fall.beyond) else fall.beyond


def typical_norm(case: Case) -> float | None:
    """The median of the norm over the run."""
    return None if case.shape is None else float(10 ** median(case.shape.y))


def early_spike_decades(case: Case) -> float | None:
    """Height of the highest spike during warm-up or just after it, above the local level."""
    return None if case.shape is None else max((s.decades for s in case.early_spikes), default=0.0)


def late_spike_decades(case: Case) -> float | None:
    """Height of the highest spike after warm-up that came back, above the local level."""
    return None if case.shape is None else max((s.decades for s in case.late_spikes), default=0.0)


def late_spikes(case: Case) -> float | None:
    """How many spikes after warm-up came back."""
    return None if case.shape is None else float(len(case.late_spikes))


def excursion_decades(case: Case) -> float | None:
    """How far the highest settled level after warm-up lies above both the lowest level before it and the end."""
    if case.shape is None:
        return None
    shape, levels = case.shape, case.shape.levels
    late = np.flatnonzero(shape.steps[: len(levels)] > case.early_until)
    if not len(late):
        return 0.0
    top = int(late[np.argmax(levels[late])])
    return float(min(levels[top] - levels[: top + 1].min(), levels[top] - shape.end))


def spike_rate(case: Case) -> float | None:
    """Share of the points at least 7 standard deviations above the rolling mean of the last 1000 points.

    The spike score of the OLMo 2 report (2501.00656, section on training stability); None under 1000 points.
    """
    if case.shape is None or case.shape.points < 1000:
        return None
    norm, values = pl.col("norm"), 10**case.shape.y
    window = pl.DataFrame({"norm": values}).select(
        mean=norm.rolling_mean(1000, min_samples=100), deviation=norm.rolling_std(1000, min_samples=100)
    )
    mean, deviation = window["mean"].to_numpy(), window["deviation"].to_numpy()
    with np.errstate(invalid="ignore"):
        return float((values[1:] > mean[:-1] + 7 * deviation[:-1]).mean())


MEASURES: Mapping[str, Measure] = {
    "decades_above_baseline": Measure(decades_above_baseline, "decades", "rise of the end over the lowest level"),
    "decades_above_early": Measure(decades_above_early, "decades", "rise of the end over the level after 15 %"),
    "decades_beyond_history": Measure(decades_beyond_history, "decades", "rise of the end over all seen before"),
    "rise_over_noise": Measure(rise_over_noise, "sigma", "rise over the log's own scatter"),
    "decades_fallen": Measure(decades_fallen, "decades", "fall of the end below the highest settled level"),
    "decades_below_history": Measure(decades_below_history, "decades", "fall of the end below all seen before"),
    "fall_start": Measure(fall_start, "share", "where in the run the fall began"),
    "fall_duration": Measure(fall_duration, "share", "time to half of the fall, of the run"),
    "points_low": Measure(points_low, "points", "points in the lower half of the fall"),
    "typical_norm": Measure(typical_norm, "", "median of the norm"),
    "early_spike_decades": Measure(early_spike_decades, "decades", "highest spike in warm-up or just after"),
    "late_spike_decades": Measure(late_spike_decades, "decades", "highest spike after warm-up"),
    "late_spikes": Measure(late_spikes, "spikes", "spikes after warm-up that came back"),
    "excursion_decades": Measure(excursion_decades, "decades", "longest high stretch over what is before and after"),
    "spike_rate": Measure(spike_rate, "share", "points 7 sigma over a rolling window", "fewer than 1000 points"),
}
