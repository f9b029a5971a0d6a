"""Hand-made reports: every field set somewhere, every verdict once."""

from __future__ import annotations

import math

import pytest

from gradtrend.model.advice import Advice
from gradtrend.model.capture import Capture, OverflowReport
from gradtrend.model.finding import Evidence, Finding
from gradtrend.model.replay import Inspection, Outcome, Replay, ReplayCause, SweepRow
from gradtrend.model.report import Checks, Failure, NonFinite, Report, RunReport, SeriesReport, SkippedRule
from gradtrend.model.runlog import Skipped, Source
from gradtrend.model.words import Cause, Order, Role, Severity, Trend, Verdict


@pytest.fixture
def exploding() -> RunReport:
    """A run that explodes at step 371 and is NaN from step 398."""
    return RunReport(
        run="out/run",
        verdict=Verdict.EXPLODING,
        confidence=0.996,
        sources=(Source("jsonl", "metrics.jsonl", 4, 412, (Skipped("truncated", line=413),), 1),),
        series=(
            SeriesReport(
                "gradient_norm",
                Role.GRAD_NORM,
                None,
                412,
                1,
                412,
                Trend.EXPLODING,
                371,
                0.9,
                320000.0,
                5.55,
                (0.9, 1.1, 0.8, 900.0, 3.2e5, math.nan, math.inf),
                lowest=0.8,
            ),
            SeriesReport(
                "train_loss",
                Role.LOSS,
                None,
                412,
                1,
                412,
                peak=40.0,
                sketch=(2.0, 1.5, 1.2, 3.0, 40.0, math.nan),
                lowest=1.2,
            ),
        ),
        nonfinite=NonFinite(398, 398, Order.SAME_STEP, Cause.AFTER_EXPLOSION, 397, 27, False, 15, 15),
        findings=(
            Finding("GT502", "stale", Severity.INFO, 0.5, "The norm repeats.", "gradient_norm", None, 5, 9),
            Finding(
                "GT101",
                "exploding",
                Severity.ERROR,
                0.99,
                "The gradient norm climbs from 0.9 to 3.2e5.",
                "gradient_norm",
                None,
                371,
                397,
                (Evidence("decades_above_baseline", 5.5, 1.0), Evidence("last_value", math.nan, None)),
                ("Lower the learning rate.", "Clip the norm."),
                ("lower-lr", "clip-gradients"),
            ),
        ),
        next=(
            Advice("lower-lr", "Lower the learning rate.", ("GT101",)),
            Advice("clip-gradients", "Clip the norm.", ("GT101",)),
            Advice("nothing-to-do", "If it comes back, nothing is wrong.", (), conditional=True),
        ),
        checks=Checks(("GT101",), (SkippedRule("GT401", "no per-layer norms"),)),
        captures=(Capture("debug/nan_capture/rank0/nan_capture.pt", "lightly-train", 398),),
        overflow_reports=(OverflowReport("debug/underflow_overflow_rank0.log", 397, True, 0, "layer2.1.relu", "ReLU"),),
        replays={"debug/nan_capture/rank0/nan_capture.pt": _replay()},
    )


def _replay() -> Replay:
    seen = Inspection("debug/nan_capture/rank0/nan_capture.pt", "lightly-train", 398, 0, "my.Model")
    row = SweepRow("float16", finite=False, loss=math.inf, gradient_norm=math.nan)
    return Replay(seen, Outcome.CONFIRMED, ReplayCause.PRECISION_RANGE, "cpu", "float16", sweep=(row,))


@pytest.fixture
def stable() -> RunReport:
    """A run with nothing to say about it."""
    norm = SeriesReport(
        "grad_norm", Role.GRAD_NORM, None, 100, 0, 99, Trend.STABLE, None, 1.0, 1.2, 0.08, (1.0, 1.2), lowest=1.0
    )
    return RunReport("runs/ok", Verdict.STABLE, 0.97, series=(norm,))


@pytest.fixture
def layered() -> RunReport:
    """A run of whose layers nine vanish."""
    findings = tuple(
        Finding(
            "GT401",
            "vanishing-layer",
            Severity.ERROR,
            0.9,
            f"Layer {i}_weight vanishes.",
            f"grad_norm/{i}_weight",
            f"{i}_weight",
            40,
            99,
            (),
            ("Check the activation.",),
        )
        for i in range(9)
    )
    advice = (Advice("check-activation", "Check the activation.", ("GT401",)),)
    return RunReport("runs/layers", Verdict.VANISHING, 0.9, findings=findings, next=advice)


@pytest.fixture
def unjudged() -> RunReport:
    """A run with too little in its log."""
    finding = Finding(
        "GT504",
        "too-short",
        Severity.WARNING,
        1.0,
        "The gradient norm has 2 points; a verdict needs 3.",
        "grad_norm",
        actions=("Log the gradient norm at every step.",),
    )
    advice = tuple(Advice("log-norm", text, ("GT504",)) for text in finding.actions)
    return RunReport("runs/short", Verdict.UNDETERMINED, None, findings=(finding,), next=advice)


@pytest.fixture
def report(exploding: RunReport, stable: RunReport, layered: RunReport, unjudged: RunReport) -> Report:
    """All of them, a path that could not be read, and one that met a bug."""
    failures = (
        Failure("out/other", "no such path", "Check the spelling."),
        Failure("out/bug", "internal error: ValueError: odd", None, "Traceback (most recent call last): ..."),
    )
    return Report(1, (exploding, stable, layered, unjudged), failures)
