"""A series in so few points that it can be drawn, however long it is."""

from __future__ import annotations

from array import array
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outline:
    """The points of a series that a chart needs, as logged and in step order: all of a short one.

    Of a longer one, of each of equally many steps: the lowest, the highest, the first NaN and the first inf, so that
    neither a spike nor a gap is lost, wherever it is drawn; and the first and the last of all. `steps` are int64,
    `values` float64 with NaN and inf kept.

    `band` is the usual range, the 5 % and 95 % quantiles of what is finite and positive, up to the onset where there is
    one; None for fewer than four points, or more than two decades. `spikes` are the steps of peaks that came back, the
    highest first.
    """

    steps: array[int]
    values: array[float]
    band: tuple[float, float] | None = None
    spikes: tuple[int, ...] = ()
