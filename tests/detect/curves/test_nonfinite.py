"""NaN and inf: where they begin, whether they stay, which came first."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.detect.curves.nonfinite import Collapse, find_collapse
from gradtrend.model.report import NonFinite, RunReport
from gradtrend.model.words import Order, Verdict
from tests.detect.runs import Values, judged, log_of, series_of_values

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("values", "collapse"),
    [
        ([1.0] * 10, None),
        ([1.0] * 8 + [NAN] * 2, Collapse(8, 8, 2)),
        ([1.0] * 9 + [INF], Collapse(9, 9, 1)),
        ([1.0] * 5 + [NAN] * 3 + [1.0] * 2, None),
        ([1.0] * 5 + [NAN] * 20 + [1.0] + [NAN] * 20, Collapse(5, 5, 41)),
        ([NAN] * 3, Collapse(0, 0, 3)),
        ([NAN] * 2, None),
        ([], None),
    ],
    ids=["none", "two last", "one last", "came back", "one let through", "all", "may be the start", "empty"],
)
def test_where_a_series_becomes_nonfinite_for_good(values: Values, collapse: Collapse | None) -> None:
    series = series_of_values(values) if values else series_of_values([1.0])
    assert find_collapse(series) == collapse


def consistent(report: RunReport, norm: Values, loss: Values) -> None:
    """What must hold between the values of a log and the report on them."""
    bad_norm = [i for i, value in enumerate(norm) if not math.isfinite(value)]
    bad_loss = [i for i, value in enumerate(loss) if not math.isfinite(value)]
    found = report.nonfinite
    if not bad_norm and not bad_loss:
        assert found is None
        return
    assert found is not None
    assert (found.grad_first_step, found.grad_count) == (min(bad_norm, default=None), len(bad_norm))
    # A loss that is no longer logged from the collapse of the norm on counts as non-finite from there.
    gone = not bad_loss and len(loss) < len(norm) and found.loss_first_step in bad_norm
    assert gone or found.loss_first_step == min(bad_loss, default=None)
    assert found.loss_count >= len(bad_loss)  # a masked 0.0 is none that was logged as NaN, but counts
    # Where the norm is no longer logged nothing is known of it.
    unseen = not bad_norm and found.loss_first_step is not None and found.loss_first_step > len(norm)
    assert found.order == (None if unseen else order_of(found))
    back = any(any(map(math.isfinite, v[i:])) for v, bad in ((norm, bad_norm), (loss, bad_loss)) for i in bad[:1])
    collapse = report.verdict in (Verdict.NAN_COLLAPSE, Verdict.EXPLODING)
    assert found.recovered == (back and not collapse)
    assert (found.cause == "recovered") == found.recovered
    if found.lead_steps is not None:
        assert any(s.onset_step is not None for s in report.series)
    collapsed = {f.rule for f in report.findings} & {"GT201"}
    assert not (collapsed and found.recovered)
    assert collapsed or found.recovered or not back


def order_of(found: NonFinite) -> Order:
    grad, loss = found.grad_first_step, found.loss_first_step
    if loss is None:
        return Order.GRADIENT_ONLY
    if grad is None:
        return Order.LOSS_ONLY
    if grad == loss:
        return Order.SAME_STEP
    return Order.GRADIENT_FIRST if grad < loss else Order.LOSS_FIRST


ROWS = [(1.0, 2.0), (NAN, 2.0), (INF, 2.0), (1.0, NAN), (NAN, NAN), (NAN, 0.0)]


@pytest.mark.parametrize("tail", list(itertools.product(ROWS, repeat=2)))
@pytest.mark.parametrize("healthy", [0, 1, 12])
def test_every_combination_of_nan_and_inf_is_consistent(healthy: int, tail: tuple[tuple[float, float], ...]) -> None:
    norm = [1.0] * healthy + [n for n, _ in tail for _ in range(3)]
    loss = [2.0] * healthy + [v for _, v in tail for _ in range(3)]
    consistent(judged(log_of(norm, loss)), norm, loss)


values = st.lists(st.sampled_from([1.0, 1.1, 0.9, NAN, INF, -INF]), min_size=1, max_size=30)


@given(values, values)
def test_any_pattern_is_consistent(norm: list[float], loss: list[float]) -> None:
    report = judged(log_of(norm, loss))
    consistent(report, norm, loss)
