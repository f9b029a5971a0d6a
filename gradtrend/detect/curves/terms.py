"""The metrics of a run by name: which terms of a loss fail while others do not."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from gradtrend.detect.curves.series import FloatArray
from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Role

_TERM = r"(?i)(?:^|[/_. ])kl(?:$|[/_. ])|loss|^l[a-z]{3}$"
_WHOLE = (
    r"(?i)^(?:\w+/)?(?:total|train|training|sum|avg|tot|mean|running|all|batch|val|valid|eval|test)?[/_. ]?loss"
    r"(?:[/_](?:avg\w*|total|mean|step|epoch|scale\w*))?$"
)


def metrics_of(log: RunLog) -> Sequence[str]:
    """The names of everything that a run logs."""
    return tuple(log.reasons) or tuple(log.table["series"].cast(pl.String).unique(maintain_order=True))


def values_named(log: RunLog, pattern: str) -> FloatArray:
    """The values of the first metric with such a name, in the order logged; empty without one."""
    name = next((name for name in metrics_of(log) if re.search(pattern, name)), None)
    if name is None:
        return np.zeros(0)
    return log.table.filter(pl.col("series") == name)["value"].to_numpy()


def bad_terms(log: RunLog) -> tuple[str, ...]:
    """The terms of a loss that are not finite at a step at which another term, or a norm, is."""
    if log.table["value"].is_finite().all():
        return ()
    names = [
        name
        for name in metrics_of(log)
        if re.search(_TERM, name) and not re.search(_WHOLE, name) and "norm" not in name
    ]
    if not names:
        return ()
    terms = log.table.filter(pl.col("series").is_in(names) & (pl.col("role") != Role.GRAD_NORM.value))
    bad = terms.filter(~pl.col("value").is_finite())
    if bad.is_empty():
        return ()
    good = terms.filter(pl.col("value").is_finite())["step"]
    norms = log.table.filter((pl.col("role") == Role.GRAD_NORM.value) & pl.col("value").is_finite())["step"]
    fine = pl.concat([good, norms]).unique()
    alone = bad.filter(pl.col("step").is_in(fine.implode()))
    return tuple(alone["series"].cast(pl.String).unique(maintain_order=True))
