"""Where a run fails for good, what came before, and whether it came with a rise."""

from __future__ import annotations

import numpy as np

from gradtrend.detect.curves.levels import median
from gradtrend.detect.curves.run import RunCurves
from gradtrend.detect.curves.series import FloatArray, Series

# Half as much again as the level before: what GT303 calls a loss that climbs away. Norms scatter by some times that.
LOSS_ROSE = 1.5
NORM_ROSE = 10.0
_NEAR = 5  # values that show the level before a failure


def failed_at(run: RunCurves) -> int | None:
    """The step from which norm or loss is not finite for good; else the first at which either is not."""
    state = run.nonfinite
    firsts = [step for step in (state.grad_first, state.loss_first) if step is not None]
    return state.collapse_step if state.collapse_step is not None else min(firsts, default=None)


def before_failure(run: RunCurves, series: Series | None) -> FloatArray:
    """The finite values of a series before the failure; all of them where there is none."""
    if series is None:
        return np.zeros(0)
    at, values = failed_at(run), series.finite_values
    return values if at is None else values[series.steps[series.finite] < at]


def rows_before_failure(run: RunCurves) -> int:
    """How many healthy rows there are before the failure."""
    return max((len(before_failure(run, s)) for s in (*run.norms, *run.losses)), default=0)


def rise_began(run: RunCurves) -> int | None:
    """The step from which norm or loss lay above its level before, to the failure or the end; None without a rise."""
    began: list[int] = []
    for series, factor in [*((norm, NORM_ROSE) for norm in run.norms), *((loss, LOSS_ROSE) for loss in run.losses)]:
        values = before_failure(run, series)
        if rise_of(values) <= factor:
            continue
        level = median(np.abs(values[: max(1, len(values) // 2)]))
        low = np.flatnonzero(values <= LOSS_ROSE * level)
        first = int(low[-1]) + 1 if len(low) else 0
        began.append(int(series.steps[series.finite][min(first, len(values) - 1)]))
    return min(began, default=None)


def rise_of(values: FloatArray) -> float:
    """How many times the last value lies above the median of those before it, of few above all; 1 without a level."""
    if len(values) < 2 or values[-1] <= 0:
        return 1.0
    level = median(np.abs(values[:-2] if len(values) > _NEAR else values[:-1]))
    return float(values[-1] / level) if level > 0 else 1.0


def fails_for_good(run: RunCurves) -> bool:
    """Whether norm or loss is not finite to the end, or never was in the few rows there are, or the trainer stopped
    for it.
    """
    if run.nonfinite.collapsed or any(note.kind == "stopped-on-nan" for note in run.log.notes):
        return True
    judged = run.norms or run.losses
    if not judged or any(not len(one) or one.finite.any() for one in judged):
        return False
    # One row of a norm beside a loss that is fine may be a step that a loss scaler skipped.
    loss = run.loss
    fine = loss is not None and len(loss) > 0 and bool(loss.finite[-1]) and loss.values[-1] != 0
    return len(judged[0]) > 1 or not fine
