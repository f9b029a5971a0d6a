"""The measures that rules name. Each takes a Case and returns a number, or None where it cannot be measured."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from gradtrend.detect import loss_measures, quality
from gradtrend.detect.case import Case, late_level
from gradtrend.detect.levels import median, window_of
from gradtrend.detect.measure import Measure
from gradtrend.detect.shape import Change
from gradtrend.detect.warmup import EARLY_SHARE

# A rise younger than this many points has not shown yet what it does to the loss.
_LOSS_ANSWERS = 8


def _rise(case: Case) -> Change | None:
    return None if case.shape is None else case.shape.rise


def _fall(case: Case) -> Change | None:
    return None if case.shape is None else case.shape.fall


def _gain(case: Case, *windows: tuple[int, int]) -> float | None:
    return None if case.run.descent is None else case.run.descent.gain(*windows)


def decades_above_baseline(case: Case) -> float | None:
    """How far the end of the run lies above its lowest settled level."""
    return None if (rise := _rise(case)) is None else rise.decades


def decades_above_early(case: Case) -> float | None:
    """How far the end lies above the level that the run had reached after its first 15 %."""
    if (shape := case.shape) is None:
        return None
    first = int(EARLY_SHARE * shape.points)
    return shape.end - median(shape.y[first : first + window_of(shape.points)])


def decades_beyond_history(case: Case) -> float | None:
    """How far the end lies above all but the highest 2 % of what was logged before the rise."""
    return None if (rise := _rise(case)) is None or math.isinf(rise.beyond) else rise.beyond


def rise_over_noise(case: Case) -> float | None:
    """The rise in standard deviations of the log's own scatter."""
    return None if case.shape is None else case.shape.rise.decades / case.shape.noise


def loss_gain_since_rise(case: Case) -> float | None:
    """How far the loss came since the rise began, as a share of where it was."""
    if (rise := _rise(case)) is None or case.shape is None or rise.decades <= 0:
        return None
    if case.shape.points - rise.onset < _LOSS_ANSWERS:
        return None
    return _gain(case, *case.before(rise.onset))


def decades_fallen(case: Case) -> float | None:
    """How far the end of the run lies below its highest settled level."""
    return None if (fall := _fall(case)) is None else fall.decades


def fall_start(case: Case) -> float | None:
    """Where in the run the fall began, as a share of its points."""
    if (fall := _fall(case)) is None or case.shape is None:
        return None
    return fall.onset / case.shape.points


def fall_duration(case: Case) -> float | None:
    """How long the fall took until it was half done, as a share of the run."""
    if (fall := _fall(case)) is None or case.shape is None or fall.held_from >= case.shape.points:
        return None
    return (fall.held_from - fall.onset) / case.shape.points


def points_low(case: Case) -> float | None:
    """How many points lie in the lower half of the fall, to the end."""
    if (fall := _fall(case)) is None or case.shape is None:
        return None
    return float(case.shape.points - fall.held_from)


def decades_below_history(case: Case) -> float | None:
    """How far the end lies below all but the lowest 2 % of what was logged before the fall."""
    return None if (fall := _fall(case)) is None or math.isinf(fall.beyond) else fall.beyond


def loss_gain_since_fall(case: Case) -> float | None:
    """How far the loss came since the fall began, as a share of where it was."""
    if (fall := _fall(case)) is None or fall.decades <= 0:
        return None
    return _gain(case, *case.before(fall.onset))


def loss_gain_since_low(case: Case) -> float | None:
    """How far the loss came since the fall was half done (in decades), as a share of where it was."""
    if (fall := _fall(case)) is None or case.shape is None or fall.held_from >= case.shape.points:
        return None
    return _gain(case, case.since(fall.held_from))


def loss_gain_overall(case: Case) -> float | None:
    """How far the loss came over the whole run, as a share of where it was."""
    return case.run.loss_gain


def loss_scatter_overall(case: Case) -> float | None:
    """Relative scatter of the loss over the run."""
    return case.run.loss_scatter


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


def collapse_points(case: Case) -> float | None:
    """How many non-finite points end the log; 1 where only a file under debug/ shows the failing step."""
    state = case.run.nonfinite
    return float(state.collapse_points or 1) if state.collapsed else 0.0


def recovered_points(case: Case) -> float | None:
    """How many non-finite values of norm and loss did not stay."""
    state = case.run.nonfinite
    return 0.0 if state.collapsed else float(state.came_back)


def late_nonfinite_share(case: Case) -> float | None:
    """Share of the norm's points after the first 15 % that are not finite; 0 where they collapse for good."""
    series = case.series
    if series is None or not len(series) or case.run.nonfinite.collapsed:
        return 0.0
    return float((~series.finite[int(EARLY_SHARE * len(series)) :]).mean())


def masked_share(case: Case) -> float | None:
    """Share of the steps with a non-finite norm whose loss is logged as exactly 0.0."""
    return case.run.nonfinite.masked_share


def decades_below_other_layers(case: Case) -> float | None:
    """How far a layer's norm lies below the largest layer's, over the second half of the run."""
    top = case.run.top_layer_level
    return None if case.shape is None or top is None else top - late_level(case.shape)


def decades_end_below_layers(case: Case) -> float | None:
    """How far the end of a layer's norm lies below the level of the largest layer."""
    top = case.run.top_layer_level
    return None if case.shape is None or top is None else top - case.shape.end


def decades_above_total_rise(case: Case) -> float | None:
    """How much more a layer's norm rose than the total's."""
    if case.shape is None:
        return None
    totals = [case.run.case(norm).shape for norm in case.run.norms]
    rises = [max(0.0, t.rise.decades) for t in totals if t is not None]
    return case.shape.rise.decades - max(rises, default=0.0)


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
    "loss_gain_since_rise": Measure(loss_gain_since_rise, "share", "loss gained since the rise", "no usable loss"),
    "decades_fallen": Measure(decades_fallen, "decades", "fall of the end below the highest settled level"),
    "decades_below_history": Measure(decades_below_history, "decades", "fall of the end below all seen before"),
    "fall_start": Measure(fall_start, "share", "where in the run the fall began"),
    "fall_duration": Measure(fall_duration, "share", "time to half of the fall, of the run"),
    "points_low": Measure(points_low, "points", "points in the lower half of the fall"),
    "loss_gain_since_fall": Measure(loss_gain_since_fall, "share", "loss gained since the fall", "no usable loss"),
    "loss_gain_since_low": Measure(loss_gain_since_low, "share", "loss gained since half the fall", "no usable loss"),
    "loss_gain_overall": Measure(loss_gain_overall, "share", "loss gained over the run", "no usable loss"),
    "loss_scatter": Measure(loss_scatter_overall, "share", "relative scatter of the loss", "no usable loss"),
    "typical_norm": Measure(typical_norm, "", "median of the norm"),
    "early_spike_decades": Measure(early_spike_decades, "decades", "highest spike in warm-up or just after"),
    "late_spike_decades": Measure(late_spike_decades, "decades", "highest spike after warm-up"),
    "late_spikes": Measure(late_spikes, "spikes", "spikes after warm-up that came back"),
    "collapse_points": Measure(collapse_points, "points", "non-finite points that end the log"),
    "recovered_points": Measure(recovered_points, "points", "non-finite values that did not stay"),
    "late_nonfinite_share": Measure(late_nonfinite_share, "share", "non-finite norms after the first 15 %"),
    "masked_share": Measure(masked_share, "share", "non-finite norms beside a loss of exactly 0.0"),
    "decades_below_other_layers": Measure(decades_below_other_layers, "decades", "below the top layer", "no layers"),
    "decades_end_below_layers": Measure(decades_end_below_layers, "decades", "end below the top layer", "no layers"),
    "decades_above_total_rise": Measure(decades_above_total_rise, "decades", "rise beyond that of the total norm"),
    "excursion_decades": Measure(excursion_decades, "decades", "longest high stretch over what is before and after"),
    "spike_rate": Measure(spike_rate, "share", "points 7 sigma over a rolling window", "fewer than 1000 points"),
    **quality.MEASURES,
    **loss_measures.MEASURES,
}
