"""Mann-Whitney's U test, exact for small samples, also where values are equal.

scipy is exact only where all values differ; hyperparameters are taken from short lists, and its approximation is far
off where few runs are sick, however many are healthy: of 10,000 runs with 3 sick ones it never says less than 0.0027.
The distribution of the sum of ranks is counted instead: by the shift algorithm of Streitberg and Röhmel (1986), and of
many runs with few sick ones by its characteristic function. The approximation is left what has many of both.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gradtrend.detect.contrast.columns import Mask

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_WORK = 5_000_000  # additions, some 10 ms: 50 runs with 12 sick are 700,000
_FEW = 50  # of more, the sum of ranks is near to normal, even where most values are equal
_NO_ROUNDING = 5  # times the runs is what the square of the few may be: beyond, what cancels out leaves too few digits
_MOST_PRODUCTS = 1_000_000  # of complex numbers, some 10 ms
_LEAST_LEVELS = 64  # that ranks are told apart by
_NOISE = 1e-12  # smaller odds are lost in the rounding of the transform


def rank_p(values: Floats, sick: Mask) -> float:
    """The two-sided p for that sick and healthy runs have the same distribution of a number."""
    few = sick if 2 * int(sick.sum()) <= sick.size else ~sick
    chosen = int(few.sum())
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    if values.size * chosen * _largest_sum(counts, chosen) <= _MOST_WORK:
        ways = _ways(tuple(counts.tolist()), chosen)
        at = int(_doubled_ranks(counts)[place[few]].sum())
        return min(1.0, 2 * float(min(ways[: at + 1].sum(), ways[at:].sum()) / ways.sum()))
    if chosen < _FEW and chosen**2 <= _NO_ROUNDING * values.size:
        levels = _levels(counts, chosen)
        odds = _odds(tuple(counts.tolist()), chosen)
        at = int(levels[place[few]].sum())
        return min(1.0, 2 * max(float(min(odds[: at + 1].sum(), odds[at:].sum())), _NOISE / 2))
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(values[sick], values[~sick], method="asymptotic").pvalue)


def least_rank_p(values: Floats, chosen: int) -> float:
    """The smallest p that so many sick runs can come to, whichever they are."""
    counts = np.unique(values, return_counts=True)[1].tolist()
    few = min(chosen, values.size - chosen)
    if few <= 0:
        return 1.0
    ends = min(_log_ways_at_end(counts, few), _log_ways_at_end(counts[::-1], few))
    return min(1.0, 2 * math.exp(ends - log_choose(values.size, few)))


def log_choose(n: int, k: int) -> float:
    """The logarithm of the number of ways to choose k of n."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _log_ways_at_end(counts: list[int], chosen: int) -> float:
    """The logarithm of how many choices have the smallest values that so many can have."""
    for count in counts:
        if count >= chosen:
            return log_choose(count, chosen)
        chosen -= count
    return 0.0


def _doubled_ranks(counts: Ints) -> Ints:
    """(k,) twice the mean rank of each of the different values, a whole number, above that of the smallest."""
    ranks: Ints = 2 * np.cumsum(counts) - counts
    ranks -= ranks[0]
    return ranks


def _largest_sum(counts: Ints, chosen: int) -> int:
    return int(_doubled_ranks(counts)[-1]) * chosen


@lru_cache(maxsize=256)  # most numbers of a sweep differ in all runs, and have the same ranks
def _ways(counts: tuple[int, ...], chosen: int) -> Floats:
    """(m,) in how many ways so many runs can be chosen for each sum of their doubled ranks, less the smallest rank."""
    sizes = np.array(counts, dtype=np.int64)
    table = np.zeros((chosen + 1, _largest_sum(sizes, chosen) + 1))
    table[0, 0] = 1.0
    for rank in np.repeat(_doubled_ranks(sizes), sizes).tolist():
        table[1:, rank:] += table[:-1, : table.shape[1] - rank]
    ways: Floats = table[chosen]
    return ways


def _levels(counts: Ints, chosen: int) -> Ints:
    """(k,) the ranks as whole numbers, as small as they can be; rounded to fewer levels where their sums would be too
    many to be counted. A test by rounded ranks is as exact: chance has the same ones.
    """
    ranks = _doubled_ranks(counts)
    ranks //= max(1, int(np.gcd.reduce(ranks)))
    most = max(_LEAST_LEVELS, _MOST_PRODUCTS // max(chosen, 3) ** 3)
    return ranks if ranks[-1] <= most else ranks * most // int(ranks[-1])


@lru_cache(maxsize=8)  # as above, of 4 MB at most
def _odds(counts: tuple[int, ...], chosen: int) -> Floats:
    """(m,) the odds of each sum of the levels of so many runs, chosen by chance.

    The sums are the powers of q in the elementary symmetric polynomial of q to each level: by Newton's identities from
    the sums of powers, on the unit circle, where those are Fourier transforms of how many runs each level has.
    """
    sizes = np.array(counts, dtype=np.int64)
    levels = _levels(sizes, chosen)
    length = 1 << (int(levels[-1]) * chosen).bit_length()
    whole = np.fft.fft(np.bincount(levels, weights=sizes, minlength=length))
    at = np.arange(length // 2 + 1)
    powers = np.array([whole[i * at % length] * (-1) ** (i - 1) for i in range(1, chosen + 1)])
    symmetric = np.ones((chosen + 1, at.size), dtype=np.complex128)
    for i in range(1, chosen + 1):
        symmetric[i] = np.einsum("ij,ij->j", symmetric[i - 1 :: -1][:i], powers[:i]) / i
    odds: Floats = np.fft.irfft(symmetric[chosen] / symmetric[chosen, 0].real, length)
    return odds
