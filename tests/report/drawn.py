"""Runs with what a chart draws, from logs that the tests write."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from gradtrend.model.report import Report
from gradtrend.pipeline.analyze import analyze_paths
from gradtrend.pipeline.runs import AnalyzeOptions

Rows = Iterable[Mapping[str, float]]
POINTS = 2000
# What must do no harm wherever it is shown: ends of scripts, handlers, escape codes, text that runs backwards.
HOSTILE = (
    "</script><img src=x onerror=hurt()>",
    '" onmouseover="hurt()" x="',
    "\x1b[31mred\u202egnp.exe]]>\u2028<!--<script>\uffff",
)


def report_of(*paths: Path) -> Report:
    """The report on the runs at some paths, with outlines."""
    runs, failures = analyze_paths([str(path) for path in paths], AnalyzeOptions(points=POINTS))
    return Report(0, runs, failures)


def log(folder: Path, rows: Rows) -> Path:
    """A run of JSON lines; NaN and inf as Python writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def exploding(n: int = 400, onset: int = 200, bad: int = 350) -> Rows:
    """Rises from `onset`, is NaN from `bad` on."""
    noise = random.Random(1)
    for i in range(n):
        norm = math.exp(noise.gauss(0, 0.1)) * 10 ** (max(0, i - onset) / 30)
        yield {"step": i, "loss": 3 - i / n, "lr": 1e-3, "grad_norm": math.nan if i >= bad else norm}


def stable(n: int = 400, seed: int = 2, change: Callable[[int, float], float] = lambda step, norm: norm) -> Rows:
    """Noise about 1, changed at some steps."""
    noise = random.Random(seed)
    for i in range(n):
        norm = change(i, math.exp(noise.gauss(0, 0.1)))
        yield {"step": i, "loss": 3 / (1 + i / 50) + noise.gauss(0, 0.01), "lr": 1e-3, "grad_norm": norm}


def layered(n: int = 200, layers: int = 12) -> Rows:
    """The first half of the layers vanishes, one of the others is NaN for a while."""
    noise = random.Random(3)
    for i in range(n):
        row = {"step": float(i), "loss": 2.3 + noise.gauss(0, 0.01), "lr": 1e-3}
        for layer in range(layers):
            norm = math.exp(noise.gauss(0, 0.1)) * (10 ** (-i / 20) if layer < layers // 2 else 1)
            bad = layer == layers - 1 and 90 <= i < 100
            row[f"grad_norm/blocks.{layer}.weight"] = math.nan if bad else norm
        row["step"] = i
        yield row
