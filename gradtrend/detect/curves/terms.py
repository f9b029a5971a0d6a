"""What a log speaks of, by the names of its metrics: which terms of a loss fail while others do not."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from gradtrend.detect.curves.series import FloatArray
from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Role

# What explodes alone, and what does not.
_EXPLODES, _DOMINATES, _STAYS = 100.0, 10.0, 3.0
_CTC = r"(?i)(?<![a-z])(?:att)?ctc(?![a-z])"
_BOXES = r"(?i)(?:^|[_/. ])(?:l?box|bbox|rpn|iou|giou|dfl|box_reg|rcnn|obj)(?:$|[_/. ])|loss_box|box_loss"
_TERM = r"(?i)(?:^|[/_. ])kl(?:$|[/_. ])|loss|^l[a-z]{3}$"
_WHOLE = (
    r"(?i)^(?:\w+/)?(?:total|train|training|sum|avg|tot|mean|running|all|batch|val|valid|eval|test|lm)?[/_. ]?loss"
    r"(?:[/_ ](?:avg\w*|total|mean|step|epoch|scale\w*))?$"
)


def metrics_of(log: RunLog) -> Sequence[str]:
    """The names of everything that a run logs."""
    return tuple(log.reasons) or tuple(log.table["series"].cast(pl.String).unique(maintain_order=True))


def names_metric(log: RunLog, pattern: str) -> bool:
    """Whether a metric has such a name."""
    return any(re.search(pattern, name) for name in metrics_of(log))


def values_named(log: RunLog, pattern: str) -> FloatArray:
    """The values of the first metric with such a name, in the order logged; empty without one."""
    name = next((name for name in metrics_of(log) if re.search(pattern, name)), None)
    if name is None:
        return np.zeros(0)
    return log.table.filter(pl.col("series") == name)["value"].to_numpy()


def speaks_of(log: RunLog, sign: str) -> bool:
    """Whether a log shows one of the signs: its lines mention it, or its metrics or settings say the same."""
    if sign in log.signs:
        return True
    if sign == "ctc":
        return names_metric(log, _CTC)
    return sign == "float16" and (bool(log.settings.in_float16) or _scales_loss(log))


def regresses_boxes(log: RunLog) -> bool:
    """Whether terms of boxes are logged: it is of a detector."""
    return names_metric(log, _BOXES)


def _scales_loss(log: RunLog) -> bool:
    """Whether the loss is scaled at all: runs in bfloat16 log a scale of 1."""
    scale = log.table["value"].filter(log.table["role"] == Role.LOSS_SCALE.value)
    return bool((scale != 1).any())


def terms_of(log: RunLog) -> list[str]:
    """The names of the metrics that are terms of a loss."""
    names = metrics_of(log)
    return [name for name in names if re.search(_TERM, name) and not re.search(_WHOLE, name) and "norm" not in name]


def exploding_terms(log: RunLog) -> tuple[str, ...]:
    """The terms of a loss that end x100 and more above their first values, and above ten times what all terms were
    together, while another does not rise by x3. (A KL term that comes up from nearly 0 stays far below the others.)
    """
    names = terms_of(log)
    terms = {name: values for name in names if len(values := _sizes(log, name)) > 1} if len(names) > 1 else {}
    if len(terms) < 2:
        return ()
    first = {name: float(values[: min(3, len(values))].min()) for name, values in terms.items()}
    if not any(values.max() < _STAYS * first[name] for name, values in terms.items()):
        return ()
    enough = _DOMINATES * sum(first.values())
    return tuple(name for name, values in terms.items() if values[-1] > max(enough, _EXPLODES * first[name]))


def _sizes(log: RunLog, name: str) -> FloatArray:
    """The sizes of the finite values of a metric, in the order logged."""
    values: FloatArray = np.abs(log.table["value"].filter(log.table["series"] == name).to_numpy())
    return values[np.isfinite(values)]


def bad_terms(log: RunLog) -> tuple[str, ...]:
    """The terms of a loss that are not finite at a step at which another term, or a norm, is."""
    if np.isfinite(log.table["value"].to_numpy()).all():
        return ()
    names = terms_of(log)
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
