"""What the loss did: how far it came between two steps, and whether it moved at all."""

from __future__ import annotations

import numpy as np

from gradtrend.detect.levels import end_window
from gradtrend.detect.series import BoolArray, Series


def pick_loss(losses: tuple[Series, ...]) -> Series | None:
    """The run's one training loss: the one with most points, the first of them."""
    return max(losses, key=len, default=None)


def masked_steps(loss: Series, norm: Series) -> BoolArray:
    """(len(loss),) True where the loss is exactly 0.0 while the norm of that step is not finite.

    A NaN filter writes so (Hugging Face `logging_nan_inf_filter`, ms-swift): the value is none.
    """
    bad = norm.steps[~norm.finite]
    masked: BoolArray = (loss.values == 0.0) & np.isin(loss.steps, bad)
    return masked


def without_masked(loss: Series, norm: Series) -> Series:
    """The loss with masked zeros as NaN."""
    masked = masked_steps(loss, norm)
    if not masked.any():
        return loss
    return Series(loss.metric, loss.role, loss.layer, loss.steps, np.where(masked, np.nan, loss.values))


def loss_level(loss: Series, first_step: int, last_step: int, at_least: int = 3) -> float | None:
    """Median of the finite loss at steps first..last, widened to `at_least` points where fewer lie there."""
    finite = loss.finite
    steps, values = loss.steps[finite], loss.values[finite]
    if not len(steps):
        return None
    a, b = np.searchsorted(steps, [first_step, last_step + 1])
    while b - a < min(at_least, len(steps)):
        a, b = max(0, a - 1), min(len(steps), b + 1)
    return float(np.median(values[a:b]))


def loss_gain(loss: Series | None, since: tuple[int, int]) -> float | None:
    """How far the loss came from the steps `since` to the end of the run, as a share of where it was.

    1 is "to zero", 0 "nothing", below 0 "worse". None without a loss, or where it is not positive throughout: then
    it is a difference of terms (RL, GANs, log densities) and says nothing of progress.
    """
    if loss is None or not loss.finite.any():
        return None
    finite = loss.values[loss.finite]
    if finite.min() < 0 or (finite > 0).mean() < 0.5:
        return None
    before = loss_level(loss, *since)
    after = float(np.median(finite[-end_window(len(finite)) :]))
    if before is None or before <= 0:
        return None
    return (before - after) / before


def loss_scatter(loss: Series | None) -> float | None:
    """Relative scatter of the loss over the run (half the 5-95 % range over the median); None as for `loss_gain`."""
    if loss is None or not loss.finite.any():
        return None
    low, middle, high = np.quantile(loss.values[loss.finite], [0.05, 0.5, 0.95])
    return float((high - low) / 2 / middle) if low > 0 else None
