"""What must not change a verdict: scale, thinning, names, other metrics, a resume; and what a prefix must not say."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradtrend.model.report import RunReport
from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Role, Trend, Verdict
from tests.detect.runs import Labelled, judged, labelled_runs, one_of_each_kind, read

KINDS = one_of_each_kind()
kinds = st.sampled_from(KINDS)
each_kind = pytest.mark.parametrize("run", KINDS, ids=lambda run: run.name)


def scaled(log: RunLog, factor: float) -> RunLog:
    is_norm = pl.col("role") == Role.GRAD_NORM.value
    return replace(
        log, table=log.table.with_columns(value=pl.when(is_norm).then(pl.col("value") * factor).otherwise("value"))
    )


def thinned(log: RunLog, every: int) -> RunLog:
    """Every so manieth logged step of each series."""
    row = pl.col("step").rank("dense").over("series") - 1
    return replace(log, table=log.table.filter(row % every == 0))


def before(log: RunLog, step: float) -> RunLog:
    return replace(log, table=log.table.filter(pl.col("step") < step))


def rests_on_the_absolute_limit(report: RunReport) -> bool:
    """Whether it says `vanishing` of a norm tiny from the first step: the one limit that knows a scale."""
    return any(e.measure == "typical_norm" for f in report.findings if f.rule == "GT102" for e in f.evidence)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(kinds, st.floats(-6, 6))
def test_the_scale_of_the_norm_does_not_count(run: Labelled, decades: float) -> None:
    other = judged(scaled(run.log, 10.0**decades))
    if rests_on_the_absolute_limit(run.report) or rests_on_the_absolute_limit(other):
        return
    assert (other.verdict, other.confidence) == (run.report.verdict, pytest.approx(run.report.confidence, abs=1e-3))
    assert [s.onset_step for s in other.series] == [s.onset_step for s in run.report.series]


def test_only_vanishing_rests_on_a_scale() -> None:
    resting = [run for run in labelled_runs() if rests_on_the_absolute_limit(run.report)]
    assert {run.report.verdict for run in resting} <= {Verdict.VANISHING}
    assert len(resting) < 0.1 * len(labelled_runs())


def finite_norms(log: RunLog) -> pl.DataFrame:
    """The finite rows of the total gradient norm."""
    is_norm = (pl.col("role") == Role.GRAD_NORM.value) & pl.col("layer").is_null()
    return log.table.filter(is_norm & pl.col("value").is_finite())


def deciding_points(log: RunLog, report: RunReport) -> int:
    """Points of the shape that decides: the finite ones of the rise or fall, or the non-finite end; else all."""
    if report.verdict is Verdict.NAN_COLLAPSE:
        assert report.nonfinite is not None
        return report.nonfinite.grad_count
    alarms = [s.onset_step for s in report.series if s.trend in (Trend.EXPLODING, Trend.VANISHING)]
    onset = min((step for step in alarms if step is not None), default=0)
    return finite_norms(log).filter(pl.col("step") >= onset).height


@pytest.mark.parametrize("every", [2, 5, 10])
def test_thinning_does_not_count(every: int) -> None:
    changed, tried = [], 0
    for run in labelled_runs()[::2]:
        log = thinned(run.log, every)
        # A level takes eight points, wherever it lies: a fall must keep as many.
        needed = 8 if run.report.verdict is Verdict.VANISHING else 5
        if finite_norms(log).height < 8 or deciding_points(run.log, run.report) < needed * every:
            continue
        tried += 1
        verdict = judged(log).verdict
        accepted = {run.report.verdict.value, *run.truth["verdict"]}
        if run.report.verdict is Verdict.WARMUP_SPIKE:  # of a few points: a shorter one may be gone
            accepted.add("stable")
        if verdict.value not in accepted:
            changed.append(f"{run.name}: {run.report.verdict} -> {verdict}")
    assert tried >= 50
    assert changed == []


def rewritten(run: Labelled, folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> RunReport:
    """The judgement on the same file with every row changed."""
    lines = gzip.decompress((run.folder / "metrics.jsonl.gz").read_bytes()).decode().splitlines()
    folder.mkdir(exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(change(json.loads(line)))}\n" for line in lines))
    return judged(read(folder))


def essence(report: RunReport) -> tuple[object, ...]:
    found = report.nonfinite
    tie = None if found is None else (found.grad_first_step, found.loss_first_step, found.order, found.cause)
    return report.verdict, report.confidence, tie, sorted((f.rule, f.first_step or 0) for f in report.findings)


def renamed(row: dict[str, Any]) -> dict[str, Any]:
    """The same metrics as another trainer calls them."""
    words = [
        ("gradient_norm", "optim/gradNorm"), ("grad_norm", "optim/gradNorm"), ("learning_rate", "sched/LR"),
        ("loss", "Training Loss"), ("lr", "sched/LR"),
    ]  # fmt: skip
    result = {}
    for key, value in row.items():
        stem = (
            key.removeprefix("train/")
            .removeprefix("train_")
            .removesuffix("/train")
            .replace("grad_norm/total", "grad_norm")
        )
        name = next((new + stem[len(old) :] for old, new in words if stem.startswith(old)), key)
        result[name] = value
    return result


@each_kind
def test_names_do_not_count(run: Labelled, tmp_path: Path) -> None:
    report = rewritten(run, tmp_path, renamed)
    assert essence(report) == essence(run.report)
    assert {s.metric for s in report.series if s.layer is None} >= {"optim/gradNorm", "Training Loss"}


@each_kind
def test_other_metrics_do_not_count(run: Labelled, tmp_path: Path) -> None:
    other = {"max_grad_norm": 1.0, "grad_norm_clip": 0.5, "val_loss": 9.0, "epoch": 0, "accuracy": 0.5, "lr_scale": 3.0}
    report = rewritten(run, tmp_path, lambda row: other | row | {"time/step_sec": 0.1 * (row["step"] % 7), "gpu": None})
    assert essence(report) == essence(run.report)


@each_kind
def test_a_resume_does_not_count(run: Labelled, tmp_path: Path) -> None:
    lines = gzip.decompress((run.folder / "metrics.jsonl.gz").read_bytes()).decode().splitlines(keepends=True)
    at = 2 * len(lines) // 3
    (tmp_path / "metrics.jsonl").write_text("".join(lines[:at] + lines[at - 3 :]))
    report = judged(read(tmp_path))
    assert report.verdict is run.report.verdict
    assert [s.points for s in report.series] == [s.points for s in run.report.series]
    assert {"GT511", "GT512"} & {f.rule for f in report.findings}


@pytest.mark.parametrize("share", [1.0, 0.9, 0.6, 0.3])
def test_a_prefix_that_ends_before_the_onset_does_not_explode(share: float) -> None:
    runs = [run for run in labelled_runs() if run.truth["onset"] is not None]
    assert len(runs) >= 45
    early = [r.name for r in runs if judged(before(r.log, share * r.truth["onset"])).verdict is Verdict.EXPLODING]
    assert early == []


@pytest.mark.parametrize("share", [0.1, 0.4, 0.8])
def test_a_healthy_run_does_not_explode_while_it_goes_on(share: float) -> None:
    alarms = []
    for run in labelled_runs():
        end, spike = share * run.truth["last_step"], run.truth["spike_step"]
        # While a spike is on, nobody can tell that it will come back.
        if set(run.truth["verdict"]) & {"exploding", "nan-collapse", "vanishing"} or (
            spike is not None and spike < end
        ):
            continue
        if judged(before(run.log, end)).verdict in (Verdict.EXPLODING, Verdict.NAN_COLLAPSE):
            alarms.append(run.name)
    assert alarms == []
