"""Measures of NaN and inf in gradient norm and loss."""

from __future__ import annotations

from collections.abc import Mapping

from gradtrend.detect.curves.run import Curve
from gradtrend.detect.curves.warmup import EARLY_SHARE
from gradtrend.detect.measures import spans
from gradtrend.detect.measures.measure import Measure


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


def _masked_share(curve: Curve) -> float | None:
    """Share of the steps with a non-finite norm whose loss is logged as exactly 0.0."""
    return curve.run.nonfinite.masked_share


MEASURES: Mapping[str, Measure] = {
    "collapse_points": Measure(_collapse_points, "points", "non-finite points that end the log", spans.collapse),
    "recovered_points": Measure(_recovered_points, "points", "non-finite values that did not stay", spans.nonfinite),
    "late_nonfinite_share": Measure(
        _late_nonfinite_share, "share", "non-finite values after the first 15 %", spans.nonfinite
    ),
    "masked_share": Measure(_masked_share, "share", "non-finite norms beside a loss of exactly 0.0", spans.collapse),
}
