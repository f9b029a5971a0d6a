"""Steps that are printed in thousands: `step:800`, `step:1K`, `step:1K`, `step:2K`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gradtrend.ingest.reading.counters import UNKNOWN, Ints


def whole_counts(counter: Ints, rounding: npt.NDArray[np.intc]) -> Ints:
    """(n,) the counters with the rounded ones at the distance at which the log goes on.

    A rounded counter stands for every step that rounds (or is cut) to it. The distance is that of the exact counters;
    where the log has none, the one at which the rounded ones fill the whole. A row that does not fit it begins anew at
    the number printed.
    """
    rounded = (rounding > 1) & (counter != UNKNOWN)
    distance = _distance(counter, rounded)
    if not rounded.any() or distance is None:
        return counter
    whole = counter.copy()
    last = UNKNOWN
    for index, (printed, unit, is_rounded) in enumerate(zip(counter, rounding, rounded, strict=True)):
        if printed == UNKNOWN:
            continue
        expected = last + distance
        if is_rounded and last != UNKNOWN and printed - unit < expected < printed + unit:
            whole[index] = expected
        last = int(whole[index])
    return whole


def _distance(counter: Ints, rounded: npt.NDArray[np.bool_]) -> int | None:
    """How many steps lie between two rows."""
    exact = counter[~rounded & (counter != UNKNOWN)]
    steps = exact if len(exact) > 1 else counter[counter != UNKNOWN]
    if len(steps) < 2:
        return None
    apart = np.diff(steps)
    usual = float(np.median(apart)) if len(exact) > 1 else float(steps[-1] - steps[0]) / (len(steps) - 1)
    return round(usual) if usual >= 1 else None
