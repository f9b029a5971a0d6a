"""What many tests at once may say.

Holm's correction (1979) holds the odds that anything is named by chance at the level, however the hyperparameters hang
together, and in a grid they do. Benjamini and Hochberg's would name more, but lets one name in twenty be wrong, and
takes independence for that: who reads the list spends a training run on each name, and there are few enough tests that
Holm costs little.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def worth_testing(least: Sequence[float], level: float) -> list[int]:
    """The positions of the tests that could be below the level once corrected, by the smallest p each can come to.

    Tests that can never be need not be corrected for (Tarone 1990): of runs that nearly all have the same value, or of
    a name that each run has its own of. The smallest p depends on how many runs are sick and how many have which value,
    not on which are sick, so that leaving a test out for it is no choice by its outcome.
    """
    for count in range(1, len(least) + 1):
        able = [i for i, p in enumerate(least) if p <= level / count]
        if len(able) <= count:
            return able
    return []


def corrected(ps: Sequence[float]) -> list[float]:
    """Holm's corrected p of each."""
    order = np.argsort(ps, kind="stable")
    factors = len(ps) - np.arange(len(ps))
    climbing = np.minimum(1.0, np.maximum.accumulate(np.asarray(ps, dtype=np.float64)[order] * factors))
    back = np.empty(len(ps))
    back[order] = climbing
    return [float(p) for p in back]
