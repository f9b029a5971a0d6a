"""Everything that was seen of one capture."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gradtrend.model.replay import Blame, Inspection, ModuleFrame, Origin, Repeats, Share, Swap, SweepRow
from gradtrend.replay.run.step import EXPLOSION, StepResult

# A replay of the same step gives the logged norm to the last digits that were logged (4 in most consoles); other
# kernels or another device add some 1e-3.
_NORM_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that was seen of one capture. `precision` is what was replayed; `known` whether the run's own.

    `usual_norm` is the gradient norm of a usual step, as the capture or the run's log has it.
    """

    inspection: Inspection
    logged_norm: float | None
    precision: str
    known: bool
    scale_assumed: bool
    device: str
    rows: tuple[SweepRow, ...]
    repeats: Repeats
    first: StepResult
    origin: Origin | None = None
    blame: Blame | None = None
    swap: Swap | None = None
    frames: tuple[ModuleFrame, ...] = ()
    usual_norm: float | None = None
    shares: tuple[Share, ...] = ()

    def finite_in(self, precision: str) -> bool | None:
        """Whether the step is finite there; None where it was not run."""
        return next((row.finite for row in self.rows if row.precision == precision), None)

    @property
    def fresh_agree(self) -> bool | None:
        """Whether the first runs of new processes are alike; None where that was not tried."""
        return self.repeats.fresh_agree

    @property
    def explodes(self) -> bool:
        """Whether the step is finite and its norm far above that of a usual step, as the captured one was."""
        norm = self.first.gradient_norm
        if self.repeats.failures or norm is None or not self.usual_norm or self.norm_matches is False:
            return False
        return norm > EXPLOSION * self.usual_norm

    @property
    def norm_overflows(self) -> bool:
        """Whether the gradients are finite and only their norm is not, as training computes it."""
        return not self.repeats.failures and self.first.norm_overflows and not self.norm_matches

    @property
    def norm_matches(self) -> bool | None:
        """Whether the replayed gradient norm is the logged one; None where either is missing or non-finite."""
        logged, replayed = self.logged_norm, self.first.gradient_norm
        if logged is None or replayed is None or not math.isfinite(logged) or not math.isfinite(replayed):
            return None
        return abs(logged - replayed) <= _NORM_TOLERANCE * max(abs(logged), abs(replayed))
