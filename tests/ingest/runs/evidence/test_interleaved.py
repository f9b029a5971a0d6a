"""Fits that were written into one table at the same time."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from gradtrend.ingest.reading import ReadOptions
from gradtrend.ingest.runs.finding.find import find_runs
from gradtrend.ingest.runs.load import load_run
from gradtrend.ingest.runs.parts import Choice
from gradtrend.ingest.runs.read import read_runs
from gradtrend.model.runlog import RunLog

STEPS = 30
Row = tuple[int, float, float]


def load(folder: Path, rows: Iterable[Row], name: str = "log.csv") -> tuple[RunLog, ...]:
    path = folder / name
    path.write_text("epoch,loss,grad_norm\n" + "".join(f"{e},{loss!r},{norm!r}\n" for e, loss, norm in rows))
    runs = read_runs(find_runs(str(path))[0], ReadOptions(), Choice())
    return tuple(load_run(run, Choice()) for run in runs)


def fit(level: float, seed: int, steps: int = STEPS) -> list[Row]:
    random.seed(seed)
    return [(e, level * (1 - e / 80), math.exp(random.gauss(0, 0.1))) for e in range(steps)]


def losses(run: RunLog) -> list[float]:
    return run.table.filter(run.table["series"] == "loss")["value"].to_list()


@pytest.mark.parametrize("count", [2, 3])
def test_row_by_row(tmp_path: Path, count: int) -> None:
    fits = [fit(1.0 + i, i) for i in range(count)]
    runs = load(tmp_path, [row for rows in zip(*fits, strict=True) for row in rows])
    assert [run.run for run in runs] == [f"{tmp_path}/log.csv#{i + 1}" for i in range(count)]
    assert [losses(run) for run in runs] == [[loss for _, loss, _ in one] for one in fits]


def test_one_began_a_little_later_and_ended_earlier(tmp_path: Path) -> None:
    first, second = fit(1.0, 1), fit(3.0, 2, STEPS - 2)
    rows = first[:3] + [row for pair in zip(second, first[3:], strict=False) for row in pair] + second[STEPS - 3 :]
    assert len(load(tmp_path, rows)) == 2


def test_one_after_another_is_another_matter(tmp_path: Path) -> None:
    one, other = fit(1.0, 1), fit(2.0, 2)
    assert [losses(run) for run in load(tmp_path, [*one, *other])] == [
        [loss for _, loss, _ in rows] for rows in (one, other)
    ]


def test_ranks_of_one_run_stay_together(tmp_path: Path) -> None:
    random.seed(3)
    rows = [(e, 2 - e / 90 + random.gauss(0, 0.1), 1.0) for e in range(STEPS) for _ in range(2)]
    assert len(load(tmp_path, rows)) == 1


def test_rows_that_stand_twice_are_one_fit(tmp_path: Path) -> None:
    assert len(load(tmp_path, [row for row in fit(1.0, 1) for _ in range(2)])) == 1


def test_a_few_steps_repeated_by_a_resume(tmp_path: Path) -> None:
    first = fit(1.0, 1)
    assert len(load(tmp_path, [*first[:20], *fit(2.0, 2)[14:]])) == 1


def test_too_few_to_tell(tmp_path: Path) -> None:
    rows = [row for pair in zip(fit(1.0, 1, 5), fit(2.0, 2, 5), strict=True) for row in pair]
    assert len(load(tmp_path, rows)) == 1
