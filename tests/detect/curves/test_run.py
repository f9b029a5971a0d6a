"""A run's curves: one for each series, and what was measured on one is kept."""

from __future__ import annotations

from gradtrend.detect.curves.run import Curve, run_curves
from tests.detect.runs import curve_of, log_of


def test_there_is_one_curve_of_a_series() -> None:
    layers = {"1": [0.5] * 9, "2": [0.4] * 9}
    run = run_curves(log_of([1.0] * 9, [2.0] * 9, lr=[0.1] * 9, param_norm=[5.0] * 9, layers=layers))
    metrics = ["grad_norm", "grad_norm/1", "grad_norm/2", "loss", "lr", "param_norm"]
    assert [series.metric for series in run.series] == metrics
    assert [run.curve(series).series for series in run.series] == list(run.series)
    assert all(run.curve(series) is run.curve(series) for series in (None, *run.series))


def test_a_curve_is_asked_once() -> None:
    asked: list[Curve] = []

    def nothing(curve: Curve) -> None:
        asked.append(curve)

    first, second = curve_of(log_of([1.0] * 9)), curve_of(log_of([1.0] * 9))
    assert [curve.measure(nothing) for curve in (first, first, second)] == [None] * 3
    assert list(map(id, asked)) == [id(first), id(second)]
