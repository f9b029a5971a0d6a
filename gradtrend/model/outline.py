"""A series in so few points that it can be drawn, however long it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outline:
    """The points of a series that a chart needs, as logged and in step order: all of a short one.

    Of a longer one, of each of equally many steps: the lowest, the highest, the first NaN and the first inf, so that
    neither a spike nor a gap is lost, wherever it is drawn; and the first and the last of all. `steps` and
    `values` (NaN and inf kept) are arrays of 8 bytes a number: of a thousand runs they are held at once.

    `band` is the usual range, the 5 % and 95 % quantiles of what is finite and positive, up to the onset where there is
    one; None for fewer than four points, or more than two decades. `spikes` are the steps of peaks that came back, the
    highest first.
    """

    steps: Sequence[int]
    values: Sequence[float]
    band: tuple[float, float] | None = None
    spikes: tuple[int, ...] = ()
