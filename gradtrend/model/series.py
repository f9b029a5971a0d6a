"""What a run logged of one metric, in numbers and before any judgement."""

from __future__ import annotations

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
