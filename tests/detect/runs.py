"""Runs to judge: made of lists, read from a folder, or the labelled ones; each labelled run is read once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from gradtrend.detect.curves.run import Curve, run_curves
from gradtrend.detect.curves.series import Series
from gradtrend.detect.judge import judge
from gradtrend.detect.rules.load import load_rules
from gradtrend.ingest.runs.series.join import TABLE_SCHEMA
from gradtrend.model.finding import Finding
from gradtrend.model.report import RunReport
from gradtrend.model.rule import Rule
from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Role
from tests.ingest.readings import log_at
from tests.places import FIXTURES

LABELLED = FIXTURES / "labelled"

Values = Sequence[float]


@cache
def shipped_rules() -> tuple[Rule, ...]:
    """The rules in `rules/`."""
    return load_rules()


def read(folder: Path) -> RunLog:
    """The one run of a folder."""
    return log_at(folder)


def judged(log: RunLog, rules: Sequence[Rule] | None = None) -> RunReport:
    """The judgement by the shipped rules, or by others."""
    return judge(log, shipped_rules() if rules is None else rules)


def rows(
    series: str, role: Role, values: Values, steps: Sequence[int] | None = None, layer: str | None = None
) -> pl.DataFrame:
    """The rows of one series; steps count from 0 where none are given."""
    n = len(values)
    return pl.DataFrame(
        {
            "series": [series] * n,
            "role": [role.value] * n,
            "layer": [layer] * n,
            "step": list(range(n)) if steps is None else list(steps),
            "value": [float(value) for value in values],
            "time": [None] * n,
            "line": [None] * n,
            "segment": [0] * n,
        },
        schema=TABLE_SCHEMA,
    )


def log_of(
    norm: Values | None = None,
    loss: Values | None = None,
    *,
    lr: Values | None = None,
    loss_scale: Values | None = None,
    param_norm: Values | None = None,
    layers: Mapping[str, Values] | None = None,
    steps: Sequence[int] | None = None,
    **more: Any,
) -> RunLog:
    """A run that logs these; `steps` holds for all of them; `more` are other fields of a RunLog."""
    given = [
        ("grad_norm", Role.GRAD_NORM, norm),
        ("loss", Role.LOSS, loss),
        ("lr", Role.LR, lr),
        ("loss_scale", Role.LOSS_SCALE, loss_scale),
        ("param_norm", Role.PARAM_NORM, param_norm),
    ]

    def cut(values: Values) -> Sequence[int] | None:
        return None if steps is None else steps[: len(values)]

    frames = [rows(name, role, values, cut(values)) for name, role, values in given if values is not None]
    frames += [
        rows(f"grad_norm/{layer}", Role.GRAD_NORM, values, cut(values), layer)
        for layer, values in (layers or {}).items()
    ]
    table = pl.concat(frames) if frames else pl.DataFrame(schema=TABLE_SCHEMA)
    return RunLog("run", table, **({"losses": ("loss",) if loss is not None else ()} | more))


def curve_of(log: RunLog, metric: str | None = "grad_norm") -> Curve:
    """What a rule is evaluated on: one series of a run."""
    run = run_curves(log)
    return Curve(run, next((s for s in run.series if s.metric == metric), None))


def series_of_values(values: Values, steps: Sequence[int] | None = None) -> Series:
    """A gradient norm by itself."""
    return curve_of(log_of(norm=values, steps=steps)).run.norms[0]


def finding(report: RunReport, rule: str) -> Finding:
    """The first finding of a rule."""
    return next(f for f in report.findings if f.rule == rule)


def fired(report: RunReport) -> set[str]:
    """The ids of the rules that fired."""
    return {f.rule for f in report.findings}


@dataclass(frozen=True)
class Labelled:
    """A labelled run: where it lies and what is true of it."""

    folder: Path
    truth: Mapping[str, Any]

    @property
    def name(self) -> str:
        """`zoo/dev000`."""
        return f"{self.folder.parent.name}/{self.folder.name}"

    @property
    def log(self) -> RunLog:
        """The run as read."""
        return _labelled_log(self.folder)

    @property
    def report(self) -> RunReport:
        """The judgement by the shipped rules."""
        return _labelled_report(self.folder)


@cache
def labelled_runs() -> tuple[Labelled, ...]:
    """All labelled runs."""
    files = sorted(LABELLED.glob("*/truth.jsonl"))
    lines = [(file.parent, line) for file in files for line in file.read_text().splitlines()]
    return tuple(Labelled(folder / truth["case"], truth) for folder, line in lines for truth in [json.loads(line)])


@cache
def one_of_each_kind() -> tuple[Labelled, ...]:
    """The shortest labelled run of each recipe."""
    by_recipe: dict[tuple[str, str], list[Labelled]] = {}
    for run in labelled_runs():
        by_recipe.setdefault((run.folder.parent.name, run.truth["recipe"]), []).append(run)
    return tuple(min(runs, key=lambda r: (r.folder / "metrics.jsonl.gz").stat().st_size) for runs in by_recipe.values())


@cache
def _labelled_log(folder: Path) -> RunLog:
    return read(folder)


@cache
def _labelled_report(folder: Path) -> RunReport:
    return judged(_labelled_log(folder))
