"""Whether two logs are of one fit, by their values: the same at equal steps, others, or nothing that can be told."""

from __future__ import annotations

from enum import Enum

import numpy as np
import numpy.typing as npt

from gradtrend.ingest.runs.evidence.traces import Trace, Values

# Common steps that must agree: loggers round and lose a few rows. The last ones must agree too: equal seeds agree up to
# the NaN, and are two runs.
_AGREE = 0.95
_LAST = 3
_LEAST = 3
_SHIFTS = (0, 1, -1)  # some loggers count the steps that were done, others that which is being done
_DIGITS_TELLING = 20  # times what a text rounds away: a value with two digits at least
_TELLING_SHARE = 0.3  # of the numbers that have as many
_LEAST_DISTINCT = 3  # values; a norm that stands still is as good as none
# Ranks that do not share their gradients, clipped and averaged prints differ by less than this at half the steps ...
_NEAR = 0.05
_BRANCH = 0.2  # of the common steps, before two attempts part
_NEAR_SHARE = 0.5
_FAR = 3.0  # ... while the values of another fit differ by such a factor, or do not rise and fall together
_TOGETHER = 0.5
_LEAST_CORRELATED = 10
_AVERAGED = (10, 30)  # values over which loggers average

_Floats = npt.NDArray[np.float64]


class Like(Enum):
    """What values say of two logs."""

    SAME = "same"
    OTHER = "other"
    UNKNOWN = "unknown"


def compare(a: Trace, b: Trace) -> Like:
    """By the gradient norm, which ranks share, where both have one that tells; else by the loss."""
    shifts = (0,) if a.format == b.format else _SHIFTS
    by_order = a.reading.numbered or b.reading.numbered
    found = Like.UNKNOWN
    if a.norm is not None and b.norm is not None:
        found = _compared(a.norm, b.norm, shifts, by_order)
    if a.loss is None or b.loss is None or found is Like.OTHER:
        return found
    if found is Like.UNKNOWN:
        return _compared(a.loss, b.loss, shifts, by_order)
    return Like.OTHER if not by_order and _far(*_common(a.loss, b.loss)) else Like.SAME


def _compared(a: Values, b: Values, shifts: tuple[int, ...], by_order: bool) -> Like:
    if by_order:
        n = min(len(a.values), len(b.values))
        return _judged(a.values[:n], b.values[:n], a, b) if n >= _LEAST else Like.UNKNOWN
    answers = []
    for shift in shifts:
        for one, other in ((a, b), (a.earlier, b), (a, b.earlier)):
            if one is None or other is None:
                continue
            x, y = _common(one, other, shift)
            answers.append(_judged(x, y, a, b) if len(x) >= _LEAST else Like.UNKNOWN)
            if answers[-1] is Like.SAME:
                return Like.SAME
    return answers[0]


def _common(a: Values, b: Values, shift: int = 0) -> tuple[_Floats, _Floats]:
    """The values at the steps that both have, those of the second moved."""
    if not shift and len(a.steps) == len(b.steps) and np.array_equal(a.steps, b.steps):
        return a.values, b.values
    _, i, j = np.intersect1d(a.steps, b.steps + shift, assume_unique=True, return_indices=True)
    return a.values[i], b.values[j]


def _judged(x: _Floats, y: _Floats, a: Values, b: Values) -> Like:
    relative, absolute = max(a.relative, b.relative), max(a.absolute, b.absolute)
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.fmax(np.abs(x), np.abs(y))
        finite = np.isfinite(x) & np.isfinite(y)
        same = (finite & (np.abs(x - y) <= np.maximum(relative * size, absolute))) | (x == y)
        # What is NaN in both, or smaller than the log prints, says nothing.
        telling = (np.isfinite(x) | np.isfinite(y)) & (size > _DIGITS_TELLING * absolute)
    if not telling.any():
        return Like.UNKNOWN
    if same[telling].mean() < _AGREE or not same[telling][-_LAST:].all():
        return Like.OTHER
    told = telling.sum() >= max(_LEAST, _TELLING_SHARE * np.isfinite(x).sum())
    return Like.SAME if told and _is_telling(x[telling], relative, absolute) else Like.UNKNOWN


def _is_telling(x: _Floats, relative: float, absolute: float) -> bool:
    """Whether the values move enough to tell one fit from another that logs the same."""
    finite = x[np.isfinite(x)]
    if len(finite) < _LEAST_DISTINCT:
        return False
    width = max(relative * float(np.abs(finite).max()), absolute, 1e-300)
    with np.errstate(over="ignore", invalid="ignore"):
        ordered = np.sort(finite)
        return (
            int((np.diff(ordered) > width).sum()) + 1 >= _LEAST_DISTINCT or len(np.unique(finite)) > len(finite) / 2 > 5
        )


def near(a: Trace, b: Trace) -> bool:
    """Whether two logs of the same steps are as near to one another as ranks that do not share their gradients."""
    pair = _pair(a, b)
    if pair is None:
        return False
    x, y = pair
    telling = np.isfinite(x) | np.isfinite(y)
    with np.errstate(invalid="ignore", over="ignore"):
        same = np.isfinite(x - y) & (np.abs(x - y) <= _NEAR * np.maximum(np.abs(x), np.abs(y)))
    return bool(telling.sum() >= _LEAST and same[telling].mean() >= _NEAR_SHARE)


def clashes(a: Trace, b: Trace) -> bool:
    """Whether two logs cannot be of one fit, even where one of them averages, clips, rounds or counts from one."""
    if near(a, b):
        return False
    pairs = [_pair(a, b, shift) for shift in _SHIFTS]
    return all(pair is not None and _far(*pair) for pair in pairs)


def _far(x: _Floats, y: _Floats) -> bool:
    """Whether the values at common steps cannot be of one fit."""
    if len(x) < _LEAST:
        return False
    if np.isfinite(x[-_LAST:]).any() != np.isfinite(y[-_LAST:]).any():
        return True
    use = np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0)
    if use.sum() < _LEAST:
        return False
    u, v = np.log(x[use]), np.log(y[use])
    if abs(float(np.median(u - v))) > np.log(_FAR):
        return True
    if use.sum() < _LEAST_CORRELATED:
        return False
    pairs = [(u, v), *((_mean_of(a, n), b[n - 1 :]) for n in _AVERAGED for a, b in ((u, v), (v, u)) if n < len(u) / 2)]
    return all(_correlation(a, b) < _TOGETHER for a, b in pairs)


def _correlation(a: _Floats, b: _Floats) -> float:
    """How far two series rise and fall together; 1 where one of them stands still, which tells nothing."""
    return float(np.corrcoef(a, b)[0, 1]) if a.std() > 0 and b.std() > 0 else 1.0


def _mean_of(values: _Floats, n: int) -> _Floats:
    """The mean of each value and the n - 1 before it, as loggers print it."""
    return np.convolve(values, np.ones(n) / n, mode="valid")


def _pair(a: Trace, b: Trace, shift: int = 0) -> tuple[_Floats, _Floats] | None:
    """The values of both at their common steps, of the norm where both have it; without steps those of logs of one
    length, in their order.
    """
    for x, y in ((a.norm, b.norm), (a.loss, b.loss)):
        if x is None or y is None:
            continue
        if a.reading.numbered or b.reading.numbered:
            return (x.values, y.values) if len(x.values) == len(y.values) >= _LEAST else None
        common = _common(x, y, shift)
        return common if len(common[0]) >= _LEAST else None
    return None


def branches(a: Trace, b: Trace) -> bool:
    """Whether two logs begin with the same values, whatever follows: one history that went on in two ways."""
    for x, y in ((a.norm, b.norm), (a.loss, b.loss)):
        if x is not None and y is not None:
            u, v = _common(x, y)
            n = max(_LEAST, int(_BRANCH * len(u)))
            if _judged(u[:n], v[:n], x, y) is Like.SAME:
                return True
    return False


def candidates(traces: list[Trace]) -> list[tuple[int, int]]:
    """The pairs that may log the same values, found without comparing each with each: neighbours in the order of their
    values at a step that both have.
    """
    if len(traces) <= _FEW:
        return [(i, j) for i in range(len(traces)) for j in range(i)]
    pairs: set[tuple[int, int]] = set()
    for pick in ("norm", "loss"):
        pairs |= _neighbours([(i, v) for i, t in enumerate(traces) if (v := getattr(t, pick)) is not None])
    return sorted(pairs)


_FEW = 40  # with so many each is compared with each: a few milliseconds
_PROBES = 32  # steps at which values are looked up
_WINDOW = 8
_ROUNDING = 0.02  # twice what three digits leave open


def _neighbours(series: list[tuple[int, Values]]) -> set[tuple[int, int]]:
    firsts = [int(v.steps[0]) for _, v in series]
    lasts = [int(v.steps[-1]) for _, v in series]
    pairs: set[tuple[int, int]] = set()
    for step in [*_commonest(firsts), *_commonest(lasts)]:
        found = []
        for i, v in series:
            at = int(np.searchsorted(v.steps, step))
            if at < len(v.steps) and v.steps[at] == step:
                found.append((_sortable(v.values[at]), _sortable(v.values[-1]), i))
        pairs |= _in_window(found)
    by_order = [(_sortable(v.values[0]), _sortable(v.values[-1]), i) for i, v in series]
    return pairs | _in_window(by_order)


def _in_window(found: list[tuple[float, float, int]]) -> set[tuple[int, int]]:
    found.sort()
    return {
        (max(i, j), min(i, j))
        for at, (x, _, i) in enumerate(found)
        for y, _, j in found[at + 1 : at + 1 + _WINDOW]
        if x == y or abs(x - y) <= _ROUNDING * abs(y)
    }


def _sortable(value: float) -> float:
    """The value to three digits, so that roundings stand together; of what is no number one at the end."""
    return float(f"{value:.2e}") if np.isfinite(value) else float("inf")


def _commonest(steps: list[int]) -> list[int]:
    counts: dict[int, int] = {}
    for step in steps:
        counts[step] = counts.get(step, 0) + 1
    return sorted(counts, key=lambda step: -counts[step])[:_PROBES]
