"""What the loss did: how far it came between two steps, and whether it moved at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradtrend.detect.curves.levels import median, quantile, spread
from gradtrend.detect.curves.series import BoolArray, FloatArray, IntArray, Series

# A change of the loss within this many standard errors of the two levels compared is its scatter, not progress.
_GAIN_SIGMAS = 3.0
# A loss evaluated every few hundred steps ends before the last batch.
NEARLY = 0.02
# A negative value smaller than this share of the loss is rounding; of others one in a hundred says nothing.
_ROUNDING = 1e-3
_FEW = 0.01
_MEDIAN_ERROR = 1.253  # standard error of a median over that of a mean, normal distribution: sqrt(pi / 2)


def batch_loss(losses: Sequence[Series], norms: Sequence[Series]) -> Series | None:
    """The loss of the steps whose norms are logged: the one with most steps in common with them, then most points."""
    steps = norms[0].steps if norms else np.zeros(0, dtype=np.int64)
    return max(losses, key=lambda loss: (int(np.isin(loss.steps, steps).sum()), len(loss)), default=None)


def furthest_of(losses: Sequence[Series]) -> tuple[Series, ...]:
    """The losses that are logged to the end, or nearly: within 2 % of the steps of that which reaches furthest."""
    first = min((int(loss.steps[0]) for loss in losses), default=0)
    last = max((int(loss.steps[-1]) for loss in losses), default=0)
    return tuple(loss for loss in losses if last - int(loss.steps[-1]) <= NEARLY * (last - first))


def masked_steps(loss: Series, norm: Series) -> BoolArray:
    """(len(loss),) True where the loss is exactly 0.0 while the norm of that step is not finite.

    A NaN filter writes so (Hugging Face `logging_nan_inf_filter`, ms-swift): the value is none.
    """
    bad = norm.steps[~norm.finite]
    masked: BoolArray = (loss.values == 0.0) & np.isin(loss.steps, bad)
    return masked


def without_masked(loss: Series, norm: Series) -> Series:
    """The loss with masked zeros as NaN."""
    if norm.finite.all() or not (masked := masked_steps(loss, norm)).any():
        return loss
    return Series(loss.metric, loss.role, loss.layer, loss.steps, np.where(masked, np.nan, loss.values))


@dataclass(frozen=True, slots=True)
class Descent:
    """Where a loss was and where it ended: finite `values` (n,) at `steps` (n,), their scatter from point to point, and
    the values `after` that say where it ended.
    """

    steps: IntArray
    values: FloatArray
    after: FloatArray
    scatter: float

    def gain(self, *windows: tuple[int, int]) -> float | None:
        """How far the loss came from where it was to the end of the run, as a share of where it was.

        `windows` are (first, last) steps; the loss before is its median in one of them, and the largest gain counts: at
        the start of a run a short window sees the steep descent, a long one a slow descent under much scatter. 1 is "to
        zero", 0 "nothing that its own scatter would not give", below 0 "worse".
        """
        end = median(self.after)
        gains = [self._gain(_inside(self.steps, self.values, *window), end) for window in windows]
        return max((gain for gain in gains if gain is not None), default=None)

    def _gain(self, before: FloatArray, end: float) -> float | None:
        start = median(before)
        if start <= 0:
            return None
        gained = start - end
        error = _MEDIAN_ERROR * self.scatter * math.sqrt(1 / len(before) + 1 / len(self.after))
        return 0.0 if abs(gained) < _GAIN_SIGMAS * error else gained / start


def descent_of(loss: Series | None) -> Descent | None:
    """The descent of a loss. None without one, or where it goes below zero, or is zero half the time: then it is a
    difference of terms (RL, GANs, log densities) and says nothing of progress.
    """
    if loss is None:
        return None
    steps, values = loss.steps[loss.finite], loss.finite_values
    if len(values) < 2 or _goes_below_zero(values) or (values > 0).mean() < 0.5:
        return None
    return Descent(steps, values, last_values(values), scatter_of(values))


def _goes_below_zero(values: FloatArray) -> bool:
    """Whether a loss goes below zero as one that may: values that rounding made, or one among hundreds, say nothing."""
    below = values < -_ROUNDING * median(np.abs(values))
    return bool(below.sum() > _FEW * len(values))


def last_values(values: FloatArray) -> FloatArray:
    """The values that say where a loss ended: the last 2 %, at least three."""
    return values[-max(3, len(values) // 50) :]


def scatter_of(values: FloatArray) -> float:
    """The scatter of a loss from point to point, as the standard deviation of one value."""
    return spread(np.diff(values)) / math.sqrt(2)


def _inside(steps: IntArray, values: FloatArray, first_step: int, last_step: int) -> FloatArray:
    """The values at steps first..last, or the nearest one before where none is logged there."""
    a, b = (int(i) for i in np.searchsorted(steps, [first_step, last_step + 1]))
    return values[a:b] if b > a else values[max(0, a - 1) : max(1, a)]


def gain_overall(loss: Series, descent: Descent) -> float | None:
    """How far a loss came over the whole run: from its first point, its first three, or its first fifth."""
    first = int(loss.steps[0])
    return descent.gain(*((first, int(loss.steps[i])) for i in (0, min(2, len(loss) - 1), len(loss) // 5)))


def loss_scatter(loss: Series | None) -> float | None:
    """Relative scatter of the loss over the run (half the 5-95 % range over the median); None unless positive."""
    if loss is None or not loss.finite.any():
        return None
    low, middle, high = (quantile(loss.finite_values, share) for share in (0.05, 0.5, 0.95))
    return float((high - low) / 2 / middle) if low > 0 else None
