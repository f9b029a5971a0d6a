"""Fisher's exact test of a part of the runs against the others."""

from __future__ import annotations

import math
from functools import lru_cache

from gradtrend.detect.contrast.ranks import log_choose
from gradtrend.model.many.contrast import Part


def table_p(inside: Part, outside: Part) -> float:
    """The two-sided p for that the runs inside are as often sick as those outside."""
    return _fisher(inside.sick, inside.runs - inside.sick, outside.sick, outside.runs - outside.sick)


@lru_cache(maxsize=4096)  # hyperparameters of a grid part the runs into the same few sizes
def _fisher(sick: int, healthy: int, other_sick: int, other_healthy: int) -> float:
    from scipy.stats import fisher_exact

    return float(fisher_exact([[sick, healthy], [other_sick, other_healthy]])[1])


@lru_cache(maxsize=4096)
def least_table_p(inside: int, sick: int, runs: int) -> float:
    """The smallest p that a part of so many runs can come to, whichever are sick."""
    most, fewest = min(inside, sick), max(0, inside - (runs - sick))
    if most == fewest:
        return 1.0
    ends = [_log_odds(count, inside, sick, runs) for count in (most, fewest)]
    both = math.isclose(*ends, rel_tol=1e-9)
    return min(1.0, math.exp(min(ends)) * (2 if both else 1))


def _log_odds(count: int, inside: int, sick: int, runs: int) -> float:
    """The logarithm of the odds that by chance just so many of those inside are sick."""
    return log_choose(sick, count) + log_choose(runs - sick, inside - count) - log_choose(runs, inside)
