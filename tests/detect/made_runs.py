"""Curves of made runs, with fixed seeds, and the files that hold them."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradtrend.cli.exit_codes import exit_code
from gradtrend.model.report import Policy, RunReport
from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Severity, Verdict
from tests.detect.runs import log_of

Curve = list[float]
Cells = Sequence[float | None]
Columns = Mapping[str, Cells]
Row = dict[str, float | None]

NOT_SICK = {Verdict.STABLE, Verdict.WARMUP_SPIKE, Verdict.UNDETERMINED}


def scatter(n: int, seed: int, size: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(n,) lognormal factors around one."""
    return np.exp(size * np.random.default_rng(seed).standard_normal(n))


def through(n: int, *anchors: tuple[float, float], noise: float = 0.0, seed: int = 0) -> Curve:
    """Positive values through (share of the run, value), straight on a log scale, with lognormal noise."""
    at, values = zip(*anchors, strict=True)
    curve = np.exp(np.interp(np.linspace(0, 1, n), at, np.log(values)))
    return [float(value) for value in curve * scatter(n, seed, noise)]


def along(n: int, *anchors: tuple[float, float], noise: float = 0.0, seed: int = 0) -> Curve:
    """Values of any sign through (share of the run, value), straight, with additive noise."""
    at, values = zip(*anchors, strict=True)
    jitter = noise * np.random.default_rng(seed).standard_normal(n)
    return [float(value) for value in np.interp(np.linspace(0, 1, n), at, values) + jitter]


def held(n: int, level: float, noise: float = 0.1, seed: int = 0) -> Curve:
    """A level with noise."""
    return through(n, (0, level), (1, level), noise=noise, seed=seed)


def learned(n: int, start: float = 4.0, end: float = 2.0, noise: float = 0.02, seed: int = 1) -> Curve:
    """A loss that falls fast and then slowly, as healthy ones do."""
    return through(n, (0, start), (0.3, (start * end * end) ** (1 / 3)), (1, end), noise=noise, seed=seed)


def with_values(curve: Curve, at: int, values: Sequence[float]) -> Curve:
    """The curve with these values from an index on."""
    return [*curve[:at], *values, *curve[at + len(values) :]]


def warmed_up(n: int, peak: float = 1e-3, warm: int = 0) -> Curve:
    """A learning rate with a linear warm-up and a linear decay."""
    return [peak * (i + 1) / warm if i < warm else peak * (n - i) / max(1, n - warm) for i in range(n)]


def made(
    norm: Curve | None = None,
    loss: Curve | None = None,
    *,
    lr: Curve | None = None,
    layers: Mapping[str, Curve] | None = None,
    loss_scale: Curve | None = None,
    every: int = 1,
) -> RunLog:
    """A run logged every so many steps; its loss is the whole training loss."""
    longest = max(len(curve) for curve in [norm or [], loss or [], lr or [], *(layers or {}).values()])
    return log_of(
        norm=norm,
        loss=loss,
        lr=lr,
        layers=layers,
        loss_scale=loss_scale,
        steps=[every * i for i in range(longest)],
        losses=() if loss is None else ("loss",),
    )


def each(logs: Mapping[str, Any], name: str = "log") -> pytest.MarkDecorator:
    """One test for each of these, called as they are."""
    return pytest.mark.parametrize(name, [pytest.param(log, id=key) for key, log in logs.items()])


def told(report: RunReport) -> str:
    """What was said, for the message of a failing test."""
    findings = "; ".join(f"{f.severity.value} {f.rule} [{f.first_step}..{f.last_step}]" for f in report.findings)
    return f"said {report.verdict.value} {report.confidence}: {findings or 'no finding'}"


def errors(report: RunReport) -> set[str]:
    """The ids of the error findings."""
    return {f.rule for f in report.findings if f.severity is Severity.ERROR}


def ids(report: RunReport) -> set[str]:
    """The ids of all findings."""
    return {f.rule for f in report.findings}


def exit_of(report: RunReport) -> int:
    """The exit code of a call on this run alone."""
    return int(exit_code([report], [], Policy()))


def is_sick(report: RunReport, *verdicts: Verdict) -> None:
    """It is judged to be one of these, by an error finding, and the call fails."""
    assert report.verdict in verdicts, told(report)
    needed = {
        Verdict.EXPLODING: {"GT101", "GT402"},
        Verdict.NAN_COLLAPSE: {"GT201", "GT203"},
        Verdict.DIVERGING: {"GT307"},
        Verdict.VANISHING: {"GT102", "GT401"},
    }[report.verdict]
    assert errors(report) & needed, told(report)
    assert ("GT307" in errors(report)) == (report.verdict is Verdict.DIVERGING), told(report)
    assert exit_of(report) == 1


def is_not_sick(report: RunReport) -> None:
    """No error finding, and no verdict that says that it failed."""
    assert not errors(report), told(report)
    assert report.verdict in NOT_SICK, told(report)


def is_stable(report: RunReport) -> None:
    """Judged stable, without an error, exit code 0."""
    assert report.verdict is Verdict.STABLE, told(report)
    assert not errors(report), told(report)
    assert exit_of(report) == 0


def rows_of(columns: Columns, every: int = 1, first: int = 0) -> list[Row]:
    """Rows with a step; a cell that is None, or beyond the end of its column, is left out, and a row without any."""
    longest = max(map(len, columns.values()))
    rows = [
        {name: cells[i] for name, cells in columns.items() if i < len(cells) and cells[i] is not None}
        for i in range(longest)
    ]
    return [{"step": first + every * i} | row for i, row in enumerate(rows) if row]


def write_json_lines(folder: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """`metrics.jsonl`, with NaN and null as Python writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


def write_csv(folder: Path, rows: Sequence[Row], *, nan: str = "nan") -> Path:
    """`metrics.csv` with an empty cell for what a row lacks; pandas writes NaN as an empty cell too."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with (folder / "metrics.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([_cell(row.get(name), nan) for name in names] for row in rows)
    return folder


def write_tensorboard(folder: Path, rows: Iterable[Row]) -> Path:
    """An event file."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        for row in rows:
            for name, value in row.items():
                if name != "step" and value is not None:
                    writer.add_scalar(name, value, int(row["step"] or 0), walltime=1.7e9 + int(row["step"] or 0))
    return folder


def as_float32(rows: Iterable[Row]) -> list[Row]:
    """The rows with values that TensorBoard can hold."""
    return [{k: v if v is None or k == "step" else float(np.float32(v)) for k, v in row.items()} for row in rows]


def _cell(value: float | None, nan: str) -> str:
    if value is None:
        return ""
    return nan if math.isnan(value) else repr(value)
