"""Counters that start again every epoch -> steps of the whole run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

UNKNOWN = -1  # stands for "not given" in the integer arrays below
# No run counts as far, and distances and sums of smaller numbers are whole numbers of 64 bits; times in ns are larger.
LARGEST = 1 << 53

Ints = npt.NDArray[np.int64]


def whole_run_steps(
    epoch: Ints, counter: Ints, total: Ints, certain: bool = False, zero_based: bool = False, redrawn: bool = False
) -> Ints:
    """Steps of the whole run: (epoch - base) x iterations per epoch + counter.

    The arrays have one entry a logged row, UNKNOWN where not given. `certain` says that the format counts within the
    epoch; otherwise the counters are left alone unless they do go back when an epoch begins. A row with only an epoch
    stands at that epoch's end. The base is 0 where an epoch 0 is seen or `zero_based`, else 1. `redrawn` says that one
    row may come several times, as progress bars do; otherwise i = n again means a new epoch of n. Numbers
    beyond `LARGEST` count no steps, and the counters are left alone then too.
    """
    if any(_beyond(numbers) for numbers in (epoch, counter, total)):
        return counter.copy()
    given = counter != UNKNOWN
    if not given.any() or not (certain or _restarts(epoch[given], counter[given], total[given], redrawn)):
        return counter.copy()
    known = epoch != UNKNOWN
    if not known[given].all():
        epoch = np.where(given, _count_restarts(counter, total, given, redrawn), UNKNOWN)
        known = given
    length = _per_epoch(counter[given], total[given])
    if (float(np.abs(epoch[known]).max()) + 1) * length > LARGEST:
        return counter.copy()
    base = 0 if zero_based or int(epoch[known].min()) == 0 else 1
    steps = np.where(given & known, (epoch - base) * length + counter, UNKNOWN)
    return np.where(~given & known, (epoch - base + 1) * length, steps)


def _beyond(numbers: Ints) -> bool:
    return len(numbers) > 0 and (int(numbers.max()) > LARGEST or int(numbers.min()) < -LARGEST)


def _per_epoch(counter: Ints, total: Ints) -> int:
    if (total != UNKNOWN).any():
        return int(total[total != UNKNOWN].max())
    # Rows come every k iterations; the epoch ends with the last of them or less than k later.
    return int(counter.max()) + (1 if int(counter.min()) == 0 else 0)


def _restarts(epoch: Ints, counter: Ints, total: Ints, redrawn: bool) -> bool:
    if (epoch == UNKNOWN).any():
        return bool(_next_epoch(counter, total, redrawn).any())
    rises, back = np.diff(epoch) > 0, np.diff(counter)
    # Finished bars, one an epoch: the counter stands at its end in each.
    ended = (back == 0) & (counter[:-1] == total[:-1]) & (total[:-1] == total[1:])
    return bool((rises & (back < 0)).any()) or bool(ended[rises].any() and (back[rises] <= 0).all())


def _next_epoch(counter: Ints, total: Ints, redrawn: bool) -> npt.NDArray[np.bool_]:
    """Where a counter goes back after it came to its end: a new epoch. One that goes back earlier is a resumed run."""
    interval = int(np.median(np.abs(np.diff(counter)))) if len(counter) > 1 else 1
    finished = (total[:-1] != UNKNOWN) & (counter[:-1] >= total[:-1] - max(1, interval))
    back = np.diff(counter) < (0 if redrawn else 1)
    restarts: npt.NDArray[np.bool_] = back & finished & (total[1:] == total[:-1])
    return restarts


def _count_restarts(counter: Ints, total: Ints, given: npt.NDArray[np.bool_], redrawn: bool) -> Ints:
    """An epoch number (from 0) for rows that give none: one more at each restart."""
    epoch = np.zeros(len(counter), dtype=np.int64)
    epoch[given] = np.concatenate(([0], np.cumsum(_next_epoch(counter[given], total[given], redrawn))))
    return epoch
