"""Where the warm-up of the learning rate ends, and what counts as "during warm-up or just after it"."""

from __future__ import annotations

import numpy as np

from gradtrend.detect.curves.series import Series

# A learning rate that starts below this share of its maximum and climbs to it was warmed up.
_STARTS_BELOW = 0.7
_AT_PEAK = 0.99
# A climb that half-way is still within 1 % of its start is a jump.
_STILL_FLAT = 1.01
# A learning rate that changes by this factor between two logged points was switched; schedules change slower.
SWITCH_FACTOR = 1.5
# "Just after" warm-up: half as long again. A spike later than that has another reason.
_AFTER_SHARE = 0.5
# A learning rate that climbs over nine tenths of the run is a schedule (or a range test), no warm-up.
_ALL_RUN = 0.9
# Without a warm-up in the log, the first 15 % of a run: most schedules warm up over 1-10 % of it.
EARLY_SHARE = 0.15


def warmup_end(lr: Series | None) -> int | None:
    """The step at which the logged learning rate first reaches its maximum after a monotone climb; None without one."""
    if lr is None:
        return None
    values, steps = lr.values[lr.finite], lr.steps[lr.finite]
    if len(values) < 3 or values.max() <= 0 or values[0] >= _STARTS_BELOW * values.max():
        return None
    top = int(np.argmax(values >= _AT_PEAK * values.max()))
    climb = values[: top + 1]
    if (np.diff(climb) < -1e-12 * values.max()).any():
        return None
    if len(climb) > 3 and climb[len(climb) // 2] <= _STILL_FLAT * climb[0]:
        return None  # flat, then a jump: a scheduler switch, no warm-up
    return int(steps[top])


def early_until(first_step: int, last_step: int, warm_end: int | None) -> float:
    """The last step that counts as warm-up or just after it."""
    early = first_step + EARLY_SHARE * (last_step - first_step)
    if warm_end is None or warm_end - first_step >= _ALL_RUN * (last_step - first_step):
        return early
    return max(early, first_step + (1 + _AFTER_SHARE) * (warm_end - first_step))
