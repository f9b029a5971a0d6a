"""What a run logged of one metric: in numbers before any judgement, and in so few points that it can be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradtrend.model.words import Role


@dataclass(frozen=True, slots=True)
class LoggedSeries:
    """One metric as logged; `why` says why it has its role, `segments` how many parts a resume or overwrite made."""

    metric: str
    role: Role
    layer: str | None
    points: int
    first_step: int | None
    last_step: int | None
    segments: int
    nonfinite: int
    why: str


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
