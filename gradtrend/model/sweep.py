"""One run of a step in one precision."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One run of the step in one precision.

    `largest` is the largest finite magnitude among the modules' outputs, `headroom` the decades from it up to the
    maximum of its type (negative where the type was exceeded). `problem` says why the run failed, else None.
    """

    precision: str
    finite: bool | None
    loss: float | None = None
    gradient_norm: float | None = None
    bad_parameters: int = 0
    first_bad_module: str | None = None
    largest: float | None = None
    headroom: float | None = None
    problem: str | None = None
