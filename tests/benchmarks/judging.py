"""Speed of judging alone: reading excluded, one core.

python -m tests.benchmarks.judging
"""

from __future__ import annotations

import os
import sys
import time

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # one core; read when polars is first imported

import numpy as np
import polars as pl
import pytest

from gradtrend.detect.judge import judge
from gradtrend.detect.rules.load import load_rules
from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Role

RULES = load_rules(None)
LENGTHS = (10_000, 100_000, 1_000_000, 10_000_000)
# One series each: how the time grows with the points. From 100,000 on fixed costs no longer hide it.
MOST_GROWTH = 15.0  # for ten times the points; memory beyond the caches takes the rest


def log_of(points: int, layers: int = 0, loss: bool = True) -> RunLog:
    """A healthy run: a total norm, a loss that falls, a learning rate with warm-up, and so many per-layer norms."""
    rng, steps = np.random.default_rng(0), np.arange(points)
    columns: dict[tuple[str, Role, str | None], np.ndarray[tuple[int], np.dtype[np.float64]]] = {
        ("grad_norm", Role.GRAD_NORM, None): np.exp(rng.normal(0, 0.2, points))
    }
    if loss:
        columns["loss", Role.LOSS, None] = 0.5 + 3 * np.exp(-5 * steps / points) + rng.normal(0, 0.05, points)
        columns["lr", Role.LR, None] = 1e-3 * np.minimum(1, (steps + 1) / (0.05 * points))
    for i in range(layers):
        columns[f"grad_norm/{i}_weight", Role.GRAD_NORM, f"{i}_weight"] = np.exp(rng.normal(-2, 0.2, points))
    return RunLog("run", pl.concat(_rows(*name, steps, values) for name, values in columns.items()))


def _rows(
    metric: str,
    role: Role,
    layer: str | None,
    steps: np.ndarray[tuple[int], np.dtype[np.int64]],
    values: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> pl.DataFrame:
    rows = pl.DataFrame({"step": steps, "value": values})
    names = {"series": metric, "role": role.value, "layer": layer}  # as categories, as reading gives them
    return rows.with_columns(pl.lit(name, pl.String).cast(pl.Categorical).alias(key) for key, name in names.items())


def seconds(log: RunLog) -> float:
    """Processor time of judging once, the better of two: other load on the machine must not count."""
    times = []
    for _ in range(2):
        start = time.process_time()
        judge(log, RULES)
        times.append(time.process_time() - start)
    return min(times)


def table() -> tuple[str, dict[str, float]]:
    """The printed table and its figures by name."""
    judge(log_of(100), RULES)  # imports and first-call costs belong to no row
    found = {"layers": seconds(log_of(10_000, layers=300))}
    lines = [f"10,000 points, 300 layers, loss, lr: {found['layers']:.2f} s"]
    for points in LENGTHS:
        found[str(points)] = seconds(log_of(points, loss=False))
        per_million = found[str(points)] / points * 1e6
        lines.append(f"{points:>10,} points, one norm: {found[str(points)]:.3f} s, {per_million:.2f} s a million")
    return "\n".join(lines), found


@pytest.mark.benchmark
def test_judging_is_fast_and_linear() -> None:
    text, found = table()
    print(text)
    assert found["layers"] < 1
    assert found["10000000"] < 3
    assert found["1000000"] < MOST_GROWTH * found["100000"]
    assert found["10000000"] < MOST_GROWTH * found["1000000"]


if __name__ == "__main__":
    sys.stdout.write(table()[0] + "\n")
