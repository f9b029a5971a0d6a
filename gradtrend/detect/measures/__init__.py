"""The measures that rules name. Each takes a Curve and returns a number, or None where it cannot be measured."""

from __future__ import annotations

from collections.abc import Mapping

from gradtrend.detect.measures import failure, layers, log, loss, nonfinite, norm, progress, scale, start
from gradtrend.detect.measures.measure import Measure

MEASURES: Mapping[str, Measure] = {
    **norm.MEASURES,
    **progress.MEASURES,
    **layers.MEASURES,
    **nonfinite.MEASURES,
    **loss.MEASURES,
    **start.MEASURES,
    **scale.MEASURES,
    **log.MEASURES,
    **failure.MEASURES,
}
