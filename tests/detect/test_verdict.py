"""From findings to the trend of a series and the verdict of a run."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from gradtrend.model.rule import Rule
from gradtrend.model.runlog import Note, RunLog
from gradtrend.model.words import Role, Severity, Trend, Verdict
from tests.detect.runs import finding, fired, judged, log_of, rows, shipped_rules

NAN = math.nan
N = 60
FLAT = [2.3] * N


def noise(seed: int = 0) -> list[float]:
    return list(10 ** np.random.default_rng(seed).normal(0, 0.04, N))


STABLE = noise()
EXPLODES = [v * (1 if i < 40 else 200) for i, v in enumerate(noise(1))]
VANISHES = [v * (1 if i < 20 else 1e-5) for i, v in enumerate(noise(2))]
SPIKE = [v * (50 if i == 5 else 1) for i, v in enumerate(noise(3))]
COLLAPSES = [*noise(4)[:50], *[NAN] * 10]


def several(*norms: list[float], loss: list[float] | None = None) -> RunLog:
    frames = [rows(f"grad_norm/part{i}", Role.GRAD_NORM, norm) for i, norm in enumerate(norms)]
    return RunLog("run", pl.concat([*frames, rows("loss", Role.LOSS, loss or FLAT)]), losses=("loss",))


@pytest.mark.parametrize(
    ("norm", "trend", "verdict"),
    [
        (STABLE, Trend.STABLE, Verdict.STABLE),
        (EXPLODES, Trend.EXPLODING, Verdict.EXPLODING),
        (VANISHES, Trend.VANISHING, Verdict.VANISHING),
        (SPIKE, Trend.WARMUP_SPIKE, Verdict.WARMUP_SPIKE),
        (COLLAPSES, Trend.STABLE, Verdict.NAN_COLLAPSE),
        ([1.0, 1.1], Trend.UNDETERMINED, Verdict.UNDETERMINED),
        ([0.0] * N, Trend.UNDETERMINED, Verdict.UNDETERMINED),
        ([1.0] * N, Trend.UNDETERMINED, Verdict.UNDETERMINED),
    ],
    ids=["stable", "exploding", "vanishing", "spike", "collapse", "short", "zeros", "clipped"],
)
def test_trend_and_verdict(norm: list[float], trend: Trend, verdict: Verdict) -> None:
    report = judged(log_of(norm, FLAT[: len(norm)]))
    assert (report.series[0].trend, report.verdict) == (trend, verdict)
    assert (report.confidence is None) == (verdict is Verdict.UNDETERMINED)
    assert report.series[1].trend is None
    if verdict is Verdict.UNDETERMINED:  # it says why
        assert any(f.severity is Severity.WARNING for f in report.findings)


PRECEDENCE = [EXPLODES, COLLAPSES, VANISHES, SPIKE, STABLE, [1.0] * N]
VERDICTS = [
    Verdict.EXPLODING, Verdict.NAN_COLLAPSE, Verdict.VANISHING, Verdict.WARMUP_SPIKE, Verdict.STABLE,
    Verdict.UNDETERMINED,
]  # fmt: skip


@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("second", range(6))
def test_the_first_verdict_in_order_that_any_norm_gives(first: int, second: int) -> None:
    report = judged(several(PRECEDENCE[first], PRECEDENCE[second]))
    assert report.verdict is VERDICTS[min(first, second)]


@pytest.mark.parametrize(
    ("norm", "verdict"),
    [
        ([3.2, 4.1, 7.6e3, NAN], Verdict.EXPLODING),
        ([3.2, 4.1, 7.6e3], Verdict.EXPLODING),
        ([4.1, 7.6e3, NAN, NAN], Verdict.EXPLODING),
        ([4.1, 7.6e3], Verdict.UNDETERMINED),
        ([1.0, 1.1, 0.9, 1.0, 1.2, 1.0, 0.9], Verdict.UNDETERMINED),
        ([1.0, 1.1, 0.9, 1.0, 1.2, 1.0, 0.9, 1.1], Verdict.STABLE),
        ([NAN, NAN, NAN], Verdict.NAN_COLLAPSE),
        ([NAN, NAN], Verdict.UNDETERMINED),
    ],
)
def test_how_little_a_verdict_needs(norm: list[float], verdict: Verdict) -> None:
    assert judged(log_of(norm, [2.3] * len(norm))).verdict is verdict


def test_a_rule_that_nearly_gave_another_verdict_makes_it_less_sure() -> None:
    """A rise just under GT101's decade, in a run that is stable and in one that ends in NaN."""
    nearly = [v * (1 if i < 40 else 9) for i, v in enumerate(noise(6))]
    for near, far in ((nearly, STABLE), ([*nearly[:50], *[NAN] * 10], COLLAPSES)):
        one, other = (judged(log_of(norm, FLAT)) for norm in (near, far))
        assert one.verdict is other.verdict
        assert (one.confidence or 0) < 0.8 < 0.9 < (other.confidence or 0)


def test_silencing_on_one_norm_leaves_the_others() -> None:
    drifts = [v * (1 if i < 40 else 5) for i, v in enumerate(noise(5))]
    report = judged(several(EXPLODES, drifts))
    assert {(f.rule, f.metric) for f in report.findings if f.rule in ("GT101", "GT104")} == {
        ("GT101", "grad_norm/part0"),
        ("GT104", "grad_norm/part1"),
    }


@pytest.mark.parametrize("rule", [rule for rule in shipped_rules() if rule.note is not None], ids=lambda rule: rule.id)
def test_a_note_is_one_finding_of_its_rule(rule: Rule) -> None:
    note = Note(rule.note or "", "what was seen", "grad_norm", 3, 9, (("share", 0.5),), "5-9")
    found = [f for f in judged(log_of(STABLE, FLAT, notes=(note, note))).findings if f.rule == rule.id]
    assert len(found) == 2
    assert "what was seen" in found[0].message
    assert (found[0].first_step, found[0].last_step, found[0].evidence[0].observed) == (3, 9, 0.5)


def test_findings_come_by_severity_then_rule() -> None:
    log = log_of([*EXPLODES, NAN, NAN], [*FLAT, NAN, NAN], notes=(Note("truncated", "cut"), Note("no-steps", "none")))
    ranks = [(-f.severity.rank, f.rule) for f in judged(log).findings]
    assert ranks == sorted(ranks)
    assert {"GT101", "GT201", "GT510", "GT515"} <= {rule for _, rule in ranks}


def test_every_rule_is_either_checked_or_skipped_for_a_reason() -> None:
    for log in (log_of(), log_of(STABLE), log_of(STABLE, FLAT, layers={"a": STABLE}), log_of(loss=FLAT)):
        checks = judged(log).checks
        skipped = {s.rule for s in checks.skipped}
        assert sorted({*checks.ran, *skipped}) == [rule.id for rule in shipped_rules()]
        assert not skipped & set(checks.ran)
        assert all(s.reason for s in checks.skipped)


def test_the_series_report_of_an_explosion() -> None:
    norm, loss = judged(log_of(EXPLODES, FLAT)).series
    assert (norm.points, norm.first_step, norm.last_step, norm.onset_step) == (N, 0, N - 1, 40)
    assert norm.baseline == pytest.approx(1.0, rel=0.15)
    assert norm.peak == pytest.approx(max(EXPLODES))
    assert norm.decades == pytest.approx(2.4, abs=0.15)
    assert (loss.role, loss.trend, loss.onset_step, loss.decades) == (Role.LOSS, None, None, None)


def test_a_finding_says_where_and_how_much() -> None:
    found = finding(judged(log_of(EXPLODES, FLAT)), "GT101")
    assert (found.first_step, found.last_step, found.metric, found.layer) == (40, N - 1, "grad_norm", None)
    assert 0.5 <= found.confidence <= 1
    assert {e.measure for e in found.evidence} >= {"decades_above_baseline", "decades_beyond_history"}
    assert "step 40" in found.message


def test_layers_are_named_one_finding_each() -> None:
    layers = {"a": noise(6), "b": [v * 1e-5 for v in noise(7)], "c": [v * 1e-6 for v in noise(8)]}
    report = judged(log_of(STABLE, FLAT, layers=layers))
    assert report.verdict is Verdict.VANISHING
    assert [f.layer for f in report.findings if f.rule == "GT401"] == ["b", "c"]
    assert report.series[0].trend is Trend.STABLE


def test_the_later_segment_counts_where_steps_repeat() -> None:
    steps = [*range(30), *range(10, 40)]
    exploding_first = [*STABLE[:10], *[900.0] * 20, *STABLE[:30]]
    log = RunLog(
        "run", pl.concat([rows("grad_norm", Role.GRAD_NORM, exploding_first, steps), rows("loss", Role.LOSS, FLAT)])
    )
    report = judged(log)
    assert report.verdict is Verdict.STABLE
    assert report.series[0].points == 40
    assert "GT101" not in fired(report)


@pytest.mark.parametrize("ends", [[1.0], [1.0, 1.1]])
def test_a_last_finite_norm_does_not_make_a_run_stable_whose_norms_are_not_finite(ends: list[float]) -> None:
    norm = [*[1.0, 1.1, 0.9, 1.2, 1.0, 1.1, 0.9, 1.0, 1.1, 0.9], *[math.inf] * 230, *ends]
    report = judged(log_of(norm, [4.0 - i / 100 for i in range(len(norm))]))
    assert report.verdict is Verdict.UNDETERMINED
    assert "GT205" in {finding.rule for finding in report.findings}
