"""What values say of names that could be a gradient norm: a norm is never negative, a signed gradient often is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.names import Naming, normalise
from gradtrend.model.words import Role

# Statistics of one quantity over the tensors of a model: `gradient_max` and `mean_gradient`, `grad_norms/avg` ...
_STATISTIC = re.compile(
    r"(?:(?P<before>mean|avg|average|max|min|median|rms)_)?(?P<core>(?:abs_)?(?:grads?|gradients?)(?:_abs|_magnitude)?)"
    r"(?:[_/.](?P<after>mean|avg|average|max|min|median|rms))?"
)
_SAME = {"avg": "mean", "average": "mean"}
_LEAST_ROWS = 8  # a signed mean that is positive in so many rows by chance is one in 256
_PRIORITY = 7  # behind every name that says norm
_WHY = {
    "mean": "the mean of the tensors' gradient magnitudes",
    "median": "the median of the tensors' gradient magnitudes",
    "max": "the largest of the tensors' gradient magnitudes",
    "rms": "the root mean square of the gradients",
}


def with_magnitudes(namings: Mapping[str, Naming], readings: Sequence[Reading]) -> dict[str, Naming]:
    """The namings of a run whose values were looked at where names alone do not tell.

    A bare `norm` or `grad` that takes negative values is no norm. Where no other metric is the gradient norm of the
    whole model, statistics of gradients stand for it whose values show that they are of magnitudes (`_of_magnitudes`).
    """
    weak = [name for name, naming in namings.items() if naming.role is Role.GRAD_NORM and naming.priority > _PRIORITY]
    signed = {name for name in weak if _least(_values(readings, name)) < 0}
    why = "it takes negative values, which no norm does"
    result = {name: replace(one, role=Role.OTHER, why=why) if name in signed else one for name, one in namings.items()}
    if any(naming.role is Role.GRAD_NORM for naming in result.values()):
        return result
    for family in _families(result):
        values = {statistic: _values(readings, name) for statistic, name in family.items()}
        if _of_magnitudes(values):
            result |= {name: _norm(name, _WHY[kind]) for kind, name in family.items() if kind in _WHY}
    return result


def _norm(name: str, why: str) -> Naming:
    # The whole name is the quantity: `mean_grad` beside `mean_gradient` is another one.
    return Naming(Role.GRAD_NORM, None, why, normalise(name), priority=_PRIORITY)


def _families(namings: Mapping[str, Naming]) -> list[dict[str, str]]:
    """The metrics that are statistics of one quantity, by statistic."""
    families: dict[str, dict[str, str]] = {}
    for name, naming in namings.items():
        found = _STATISTIC.fullmatch(normalise(name)) if naming.role is Role.OTHER else None
        if found is not None and (found["before"] is None) != (found["after"] is None):
            statistic = found["before"] or found["after"]
            families.setdefault(found["core"], {})[_SAME.get(statistic, statistic)] = name
    return list(families.values())


def _of_magnitudes(values: Mapping[str, pl.Series]) -> bool:
    """Whether statistics are of magnitudes: a mean and a maximum over enough rows, neither they nor the minimum ever
    negative, the maximum never below the mean.

    Of signed gradients the mean is negative as often as not, and the minimum nearly always.
    """
    if not {"mean", "max"} <= values.keys() or any(_least(column) < 0 for column in values.values()):
        return False
    mean, largest = values["mean"], values["max"]
    if len(mean) != len(largest):
        return False
    both = mean.is_finite() & largest.is_finite()
    mean, largest = mean.filter(both), largest.filter(both)
    enough = int((mean > 0).sum()) >= max(_LEAST_ROWS, len(mean) / 2)  # a signed mean may be rounded to zero
    return enough and bool((mean <= largest * (1 + 1e-6)).all())


def _values(readings: Sequence[Reading], name: str) -> pl.Series:
    """All values of a metric, in the order of the readings."""
    columns = [reading.series[name]["value"] for reading in readings if name in reading.series]
    return pl.concat(columns) if columns else pl.Series(dtype=pl.Float64)


def _least(values: pl.Series) -> float:
    least = values.filter(values.is_finite()).min()
    return least if isinstance(least, float) else 0.0
