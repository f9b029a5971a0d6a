"""The judgement on 188 labelled runs: small networks really trained, and synthetic shapes of 27 kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradtrend.model.report import RunReport
from gradtrend.model.words import Role
from tests.detect.runs import Labelled, labelled_runs

SICK = {"exploding", "nan-collapse", "vanishing"}


def accepted(run: Labelled) -> bool:
    return run.report.verdict.value in run.truth["verdict"]


def misses(runs: list[Labelled]) -> list[str]:
    return [f"{run.name}: {run.report.verdict}, truth {run.truth['verdict']}" for run in runs if not accepted(run)]


def onset_agrees(run: Labelled) -> bool:
    """Within five logging intervals, or 3 % of the run."""
    near = max(5 * run.truth["every"], 0.03 * run.truth["last_step"])
    totals = [s for s in run.report.series if s.role is Role.GRAD_NORM and s.layer is None]
    return any(abs(s.onset_step - run.truth["onset"]) <= near for s in totals if s.onset_step is not None)


def layers_agree(run: Labelled) -> bool:
    """At least half of the true layers named, and at most as many others."""
    named, true = {f.layer for f in run.report.findings if f.layer is not None}, set(run.truth["layers"])
    return len(named & true) >= max(len(true), len(named)) / 2


def nonfinite_of(report: RunReport) -> tuple[Any, Any, Any]:
    found = report.nonfinite
    return (None, None, None) if found is None else (found.grad_first_step, found.loss_first_step, found.cause)


def true_nonfinite(truth: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return truth["grad_nonfinite"], truth["loss_nonfinite"], truth["cause"]


def test_verdicts() -> None:
    runs = list(labelled_runs())
    assert len(runs) == 188
    missed = misses(runs)
    assert len(missed) <= 0.01 * len(runs), missed


def test_every_sick_run_is_caught() -> None:
    sick = [run for run in labelled_runs() if set(run.truth["verdict"]) <= SICK]
    assert len(sick) == 85
    assert [run.name for run in sick if run.report.verdict.value not in SICK] == []


def test_no_false_alarm() -> None:
    healthy = [run for run in labelled_runs() if not set(run.truth["verdict"]) & SICK]
    assert len(healthy) == 101
    assert [run.name for run in healthy if run.report.verdict.value in SICK] == []


def test_onsets() -> None:
    runs = [run for run in labelled_runs() if run.truth["onset"] is not None and accepted(run)]
    missed = [run.name for run in runs if not onset_agrees(run)]
    assert len(runs) >= 44
    assert len(missed) <= 0.07 * len(runs), missed


def test_nonfinite_steps() -> None:
    wrong = [r.name for r in labelled_runs() if nonfinite_of(r.report)[:2] != true_nonfinite(r.truth)[:2]]
    assert wrong == []


def test_causes() -> None:
    runs = [run for run in labelled_runs() if run.truth["cause"] is not None]
    wrong = [run.name for run in runs if nonfinite_of(run.report)[2] != run.truth["cause"]]
    assert len(runs) == 51
    assert len(wrong) <= 1, wrong


def test_layers() -> None:
    runs = [run for run in labelled_runs() if run.truth.get("layers")]
    assert len(runs) == 5
    assert [run.name for run in runs if not layers_agree(run)] == []


def test_confidence_is_high_where_it_is_right() -> None:
    sure = [r for r in labelled_runs() if r.report.confidence is not None and r.report.confidence >= 0.9]
    assert len(sure) >= 0.7 * len(labelled_runs())
    assert len(misses(sure)) <= 0.01 * len(sure)
