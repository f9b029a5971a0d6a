"""What values say where names do not: statistics of gradients, and bare names."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from gradtrend.model.runlog import RunLog
from tests.ingest.readings import log_at

ROWS = 24


def load(folder: Path, columns: dict[str, Sequence[float]], **chosen: str) -> RunLog:
    path = folder / "log.csv"
    rows = zip(*columns.values(), strict=True)
    text = "".join(f"{i},{','.join(map(repr, row))}\n" for i, row in enumerate(rows))
    path.write_text(f"epoch,{','.join(columns)}\n{text}")
    return log_at(path, **chosen)


def norms(run: RunLog) -> list[str]:
    return (
        run.table.filter(pl.col("role") == "grad_norm")["series"].unique(maintain_order=True).cast(pl.String).to_list()
    )


def magnitudes(names: Sequence[str]) -> dict[str, list[float]]:
    """A loss, and the mean, maximum and minimum of per-tensor norms under these names."""
    random.seed(4)
    size = [0.05 * math.exp(random.gauss(0, 0.3)) for _ in range(ROWS)]
    factors = dict(zip(names, (1.0, 1.7, 0.4), strict=False))
    return {"loss": [2.0 - i / 50 for i in range(ROWS)]} | {n: [f * s for s in size] for n, f in factors.items()}


def signed(seed: int, scale: float = 0.01) -> list[float]:
    random.seed(seed)
    return [random.gauss(0, scale) for _ in range(ROWS)]


@pytest.mark.parametrize(
    "names",
    [
        ("mean_gradient", "gradient_max", "gradient_min"),
        ("grad_mean", "grad_max", "grad_min"),
        ("gradients/avg", "gradients/max"),
        ("grad_abs_mean", "grad_abs_max"),
        ("Mean Grad", "Max Grad", "Min Grad"),
    ],
)
def test_statistics_of_magnitudes_stand_for_the_norm(tmp_path: Path, names: tuple[str, ...]) -> None:
    run = load(tmp_path, magnitudes(names))
    assert norms(run) == list(names[:2])
    assert "mean of the tensors" in run.reasons[names[0]]
    assert "largest of the tensors" in run.reasons[names[1]]


def test_signed_statistics_are_no_norm(tmp_path: Path) -> None:
    columns = magnitudes(()) | {"mean_grad": signed(1), "max_grad": [0.1 + abs(v) for v in signed(2)]}
    assert norms(load(tmp_path, columns)) == []
    assert norms(load(tmp_path, columns | {"min_grad": [-abs(v) for v in signed(3)]})) == []


def test_another_statistic_of_another_core_is_not_merged(tmp_path: Path) -> None:
    columns = magnitudes(("mean_gradient", "gradient_max")) | {"mean_grad": signed(1), "std_grad": [0.01] * ROWS}
    run = load(tmp_path, columns)
    assert norms(run) == ["mean_gradient", "gradient_max"]
    assert run.table.filter(pl.col("series") == "mean_grad")["value"].to_list() == columns["mean_grad"]


def test_a_minimum_below_zero_says_that_the_mean_is_signed(tmp_path: Path) -> None:
    columns = magnitudes(("grad_mean", "grad_max"))
    assert norms(load(tmp_path, columns | {"grad_min": [-v for v in columns["grad_max"]]})) == []


@pytest.mark.parametrize("name", ["grad_mean", "gradient_max", "mean_gradient"])
def test_one_statistic_alone_says_too_little(tmp_path: Path, name: str) -> None:
    assert norms(load(tmp_path, magnitudes((name,)))) == []


def test_a_mean_that_is_rounded_to_nothing_says_nothing(tmp_path: Path) -> None:
    columns = magnitudes(("grad_mean", "grad_max"))
    assert norms(load(tmp_path, columns | {"grad_mean": [0.0] * ROWS})) == []


def test_a_maximum_below_the_mean_is_of_something_else(tmp_path: Path) -> None:
    columns = magnitudes(("grad_mean", "grad_max"))
    assert norms(load(tmp_path, columns | {"grad_max": [v / 2 for v in columns["grad_mean"]]})) == []


def test_beside_a_norm_they_are_no_norm(tmp_path: Path) -> None:
    columns = magnitudes(("mean_gradient", "gradient_max")) | {"grad_norm": [1.0 + i / 9 for i in range(ROWS)]}
    assert norms(load(tmp_path, columns)) == ["grad_norm"]
    assert norms(load(tmp_path, columns, metric="gradient_max")) == ["gradient_max"]


@pytest.mark.parametrize(("values", "taken"), [([abs(v) + 1 for v in signed(5)], True), (signed(5), False)])
@pytest.mark.parametrize("name", ["grad", "norm"])
def test_a_bare_name_with_negative_values_is_no_norm(
    tmp_path: Path, name: str, values: list[float], taken: bool
) -> None:
    run = load(tmp_path, magnitudes(()) | {name: values})
    assert norms(run) == ([name] if taken else [])
    assert taken or "negative" in run.reasons[name]


@pytest.mark.parametrize("name", ["gradient_penalty", "grad_accum", "grade", "grad_time", "gradients/histogram"])
def test_what_only_mentions_gradients(tmp_path: Path, name: str) -> None:
    assert norms(load(tmp_path, magnitudes(()) | {name: [abs(v) + 1 for v in signed(6)]})) == []
