"""Measures of NaN and inf in gradient norm and loss."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.warmup import EARLY_SHARE
from gradtrend.detect.measures import spans
from gradtrend.detect.measures.measure import Measure

# Healthy runs keep a loss scale of 256 and above; one below this is on its way to nothing (GT204).
_WORKING_SCALE = 64.0
# In the first twentieth a loss scaler finds its level.
_FIRST_SHARE = 0.05


def _collapse_points(curve: Curve) -> float | None:
    """How many non-finite points end the log; 1 where only a file under debug/ shows the failing step."""
    state = curve.run.nonfinite
    return float(state.collapse_points or 1) if state.collapsed else 0.0


def _recovered_points(curve: Curve) -> float | None:
    """How many non-finite values of norm and loss did not stay."""
    state = curve.run.nonfinite
    return 0.0 if state.collapsed else float(state.came_back)


def _late_nonfinite_share(curve: Curve) -> float | None:
    """Share of the points of norm or loss, the larger, after the first 15 % that are not finite; 0 where they collapse
    for good.
    """
    run = curve.run
    witnesses = [s for s in (curve.series, *run.losses) if s is not None and not run.nonfinite.collapsed]
    return max((float((~s.finite[int(EARLY_SHARE * len(s)) :]).mean()) for s in witnesses), default=0.0)


def _nonfinite_share(curve: Curve) -> float | None:
    """Share of the points of a norm or a loss, the largest, after the first twentieth that are not finite."""
    run = curve.run
    parts = (s.finite[int(_FIRST_SHARE * len(s)) :] for s in (*run.norms, *run.losses) if len(s))
    return max((float((~part).mean()) for part in parts), default=0.0)


def _masked_share(curve: Curve) -> float | None:
    """Share of the steps with a non-finite norm whose loss is logged as exactly 0.0."""
    return curve.run.nonfinite.masked_share


def _skipped_updates(curve: Curve) -> float | None:
    """How many updates the trainer says that it skipped, but for those with which a loss scale is found: a scale that
    only falls at first, and stays far from nothing.
    """
    run = curve.run
    said = sum(dict(n.measures).get("skipped_updates", 0.0) for n in run.log.notes if n.kind == "skipped-updates")
    scale = run.loss_scale
    values = scale.finite_values if scale is not None else None
    if values is None or len(values) < 2 or values[-1] < _WORKING_SCALE:
        return said
    steps = np.log2(values[1:] / values[:-1]) if (values > 0).all() else np.zeros(0)
    rises = np.flatnonzero(steps > 0)
    falling = steps[: rises[0]] if len(rises) else steps
    return max(0.0, said - 1.0 - float(np.count_nonzero(falling < 0)))


MEASURES: Mapping[str, Measure] = {
    "collapse_points": Measure(_collapse_points, "points", "non-finite points that end the log", spans.collapse),
    "recovered_points": Measure(_recovered_points, "points", "non-finite values that did not stay", spans.nonfinite),
    "late_nonfinite_share": Measure(
        _late_nonfinite_share, "share", "non-finite values after the first 15 %", spans.nonfinite
    ),
    "nonfinite_share": Measure(_nonfinite_share, "share", "non-finite values after the first twentieth", spans.whole),
    "skipped_updates": Measure(
        _skipped_updates, "updates", "updates skipped after the loss scale was found", spans.nonfinite
    ),
    "masked_share": Measure(_masked_share, "share", "non-finite norms beside a loss of exactly 0.0", spans.collapse),
}
