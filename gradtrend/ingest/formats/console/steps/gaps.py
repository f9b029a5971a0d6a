"""Steps that a log should have and has not: lines lost to a crash, to interleaved output or to an excerpt."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from gradtrend.ingest.formats.console.lines.plan import says
from gradtrend.ingest.reading.names import SKIPPED_NORM
from gradtrend.model.runlog import Note
from gradtrend.model.words import Role

_REGULAR = 0.8  # share of steps at the usual distance above which the others are gaps, not another rhythm
_FEWEST = 8  # points from which a rhythm shows


def missing_steps(series: Mapping[str, pl.DataFrame]) -> tuple[Note, ...]:
    """A note that counts the missing steps of the best-logged gradient norm (or loss), if there are any."""
    names = sorted((name for name in series if name != SKIPPED_NORM), key=lambda name: -series[name].height)
    for role in (Role.GRAD_NORM, Role.LOSS):
        metric = next((name for name in names if says(name) is role), None)
        if metric is not None:
            return _note(metric, series[metric]["step"].drop_nulls())
    return ()


def _note(metric: str, steps: pl.Series) -> tuple[Note, ...]:
    distance = np.diff(steps.to_numpy())
    forward = distance[distance > 0]
    if len(forward) + 1 < _FEWEST:
        return ()
    values, counts = np.unique(forward, return_counts=True)
    usual = int(values[counts.argmax()])
    gaps = (distance > usual) & (distance % usual == 0)
    if counts.max() < _REGULAR * len(forward) or not gaps.any():
        return ()
    missing = int((distance[gaps] // usual - 1).sum())
    after = int(steps[int(np.flatnonzero(gaps)[0])])
    plural = "step is" if missing == 1 else "steps are"
    message = f"{missing} {plural} missing from {metric}, which is logged every {usual}; the first after step {after}"
    return (Note("missing-steps", message, metric, first_step=after, measures=(("missing_steps", float(missing)),)),)
