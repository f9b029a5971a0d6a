"""Whatever a log holds, it gets a valid report: no exception, no warning."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import jsonschema
import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradtrend.model.report import Report, RunReport
from gradtrend.model.runlog import RunLog, Settings
from gradtrend.model.words import Role, Severity, Trend, Verdict
from gradtrend.report.json.report import render_json, schema
from gradtrend.report.text.report import render_text
from gradtrend.report.wording.style import Style
from tests.detect.runs import judged, rows

VALIDATOR = jsonschema.Draft202012Validator(schema())
ODD = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    math.nan,
    math.inf,
    -math.inf,
    5e-324,
    sys.float_info.max,
    -sys.float_info.max,
    1e-300,
    3.4e38,
]
numbers = st.one_of(st.floats(), st.sampled_from(ODD), st.floats(1e-6, 1e6))


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not RFC 8259")


def checked(log: RunLog) -> RunReport:
    """The report on a log, judged with every warning an error, and valid as JSON and as text."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = judged(log)
        text = render_json(Report(0, (report,)), Style())
        assert render_text(Report(0, (report,)), Style())
    VALIDATOR.validate(json.loads(text, parse_constant=refuse))
    for found in report.findings:
        assert 0 <= found.confidence <= 1
        assert found.message
        assert (found.first_step is None) == (found.last_step is None) or found.rule.startswith("GT5")
        if found.first_step is not None and found.last_step is not None:
            assert found.first_step <= found.last_step or found.rule in ("GT201", "GT203")
    assert (report.confidence is None) == (report.verdict is Verdict.UNDETERMINED)
    if report.verdict is Verdict.UNDETERMINED:  # it says why
        assert any(found.severity is not Severity.INFO for found in report.findings)
    return report


def log_with(
    columns: dict[str, tuple[Role, list[float]]], steps: Sequence[int], setup: Settings | None = None
) -> RunLog:
    frames = [rows(name, role, values, steps[: len(values)]) for name, (role, values) in columns.items()]
    return RunLog("run", pl.concat(frames), settings=setup or Settings())


@st.composite
def columns(draw: st.DrawFn, longest: int = 60) -> tuple[list[float], list[float], list[int]]:
    """A norm and a loss of any values, and steps that may repeat or go back."""
    n = draw(st.integers(1, longest))
    value = draw(st.sampled_from([numbers, st.sampled_from(ODD), st.floats(0.5, 2), st.just(draw(numbers))]))
    norm = draw(st.lists(value, min_size=n, max_size=n))
    loss = draw(st.lists(draw(st.sampled_from([numbers, st.floats(0, 5)])), min_size=n, max_size=n))
    kind = draw(st.sampled_from(["in order", "apart", "any"]))
    if kind == "any":
        return norm, loss, draw(st.lists(st.integers(-5, 100), min_size=n, max_size=n))
    first, every = draw(st.integers(-(2**40), 2**40)), draw(st.integers(1, 10_000)) if kind == "apart" else 1
    return norm, loss, [first + every * i for i in range(n)]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(columns())
def test_any_norm_and_loss(drawn: tuple[list[float], list[float], list[int]]) -> None:
    norm, loss, steps = drawn
    report = checked(log_with({"grad_norm": (Role.GRAD_NORM, norm), "loss": (Role.LOSS, loss)}, steps))
    trend = next(s.trend for s in report.series if s.metric == "grad_norm")
    if report.verdict in (Verdict.STABLE, Verdict.VANISHING):
        assert trend in (Trend.STABLE, Trend.VANISHING)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(columns(40), columns(40), st.sampled_from([None, 0.0, 1.0]), st.sampled_from([None, "16-mixed", "32-true"]))
def test_any_layers_rates_scales_and_weights(one: Any, two: Any, clip: float | None, precision: str | None) -> None:
    (norm, rate, steps), (loss, scale, other_steps) = one, two
    n = min(len(steps), len(other_steps))
    log = log_with(
        {
            "grad_norm": (Role.GRAD_NORM, norm),
            "lr": (Role.LR, rate),
            "loss": (Role.LOSS, loss[:n]),
            "loss_scale": (Role.LOSS_SCALE, scale[:n]),
            "param_norm": (Role.PARAM_NORM, loss[:n]),
        },
        steps,
    )
    layers = [
        rows("grad_norm/a", Role.GRAD_NORM, norm, steps, "a"),
        rows("grad_norm/b", Role.GRAD_NORM, loss, other_steps, "b"),
    ]
    setup = Settings(gradient_clip=clip, precision=precision)
    checked(RunLog("run", pl.concat([log.table, *layers]), settings=setup))


@settings(max_examples=40, deadline=None)
@given(numbers, st.integers(1, 300), numbers)
def test_constants_of_any_size_and_length(value: float, n: int, loss: float) -> None:
    report = checked(log_with({"grad_norm": (Role.GRAD_NORM, [value] * n), "loss": (Role.LOSS, [loss] * n)}, range(n)))
    assert report.verdict is not Verdict.EXPLODING
    assert report.verdict is not Verdict.STABLE


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.9, 1.1), min_size=8, max_size=300))
def test_a_narrow_band_is_never_an_alarm(norm: list[float]) -> None:
    report = checked(log_with({"grad_norm": (Role.GRAD_NORM, norm)}, range(len(norm))))
    assert report.verdict in (Verdict.STABLE, Verdict.UNDETERMINED)
