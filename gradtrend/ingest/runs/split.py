"""Several runs in one folder: files of one format, side by side, that log the same steps with other values."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from gradtrend.ingest.reading import Reading
from gradtrend.ingest.reading.names import name_metric
from gradtrend.model.words import Role

# Two files log the same steps when one has this share of the other's; copies and other ranks of one run then agree.
_SAME_STEPS = 0.5
# ... and is of another run when at most this share of the common steps agrees.
_SAME_VALUES = 0.5
_TOLERANCE = 0.05  # other ranks and rounded prints differ by less
_LEAST_POINTS = 3


def split(readings: Sequence[Reading], one_run_formats: Collection[str] = ()) -> list[list[Reading]]:
    """The readings by run: one list where all may be of one run, else one for each file that is a run of its own.

    Files of `one_run_formats` that lie in one folder are of one run by their tools' own rules (event files, stores);
    loose files of text need not be.
    Another format beside them that logs a norm is a run as well; what logs none is given to the first.
    """
    groups: dict[tuple[str, str], list[Reading]] = {}
    for reading in readings:
        groups.setdefault((reading.format, str(reading.path.parent)), []).append(reading)
    several = [key for key, parts in groups.items() if key[0] not in one_run_formats and len(parts) > 1]
    if not several:
        return [list(readings)]
    norms = {key: [_norm(reading) for reading in parts] for key, parts in groups.items()}
    apart = [key for key in several if _differ([norm for norm in norms[key] if norm is not None])]
    if not apart:
        return [list(readings)]
    runs: list[list[Reading]] = []
    beside: list[Reading] = []
    for key in apart:
        for reading, norm in zip(groups[key], norms[key], strict=True):
            if norm is None:
                beside.append(reading)
            else:
                runs.append([reading])
    for key in (key for key in groups if key not in apart):
        if any(norm is not None for norm in norms[key]):
            runs.append(groups[key])
        else:
            beside += groups[key]
    return [[*runs[0], *beside], *runs[1:]]


def _differ(norms: Sequence[pl.DataFrame]) -> bool:
    """Whether two files log the same steps with other values of the gradient norm."""
    return any(_other_run(a, b) for i, a in enumerate(norms) for b in norms[i + 1 :])


def _norm(reading: Reading) -> pl.DataFrame | None:
    """Step and value of the reading's total gradient norm, or None."""
    for metric, points in reading.series.items():
        naming = name_metric(metric)
        if naming.role is Role.GRAD_NORM and naming.layer is None:
            rows = points.select("step", "value").drop_nulls()
            return rows.unique("step", keep="last") if rows.height >= _LEAST_POINTS else None
    return None


def _other_run(a: pl.DataFrame, b: pl.DataFrame) -> bool:
    common = a.join(b, on="step", suffix="_b")
    if common.height < max(_LEAST_POINTS, _SAME_STEPS * min(a.height, b.height)):
        return False
    x, y = common["value"].to_numpy(), common["value_b"].to_numpy()
    with np.errstate(invalid="ignore"):
        same = (np.abs(x - y) <= _TOLERANCE * np.maximum(np.abs(x), np.abs(y))) | (~np.isfinite(x) & ~np.isfinite(y))
    return bool(same.mean() < _SAME_VALUES)
