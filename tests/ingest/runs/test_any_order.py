"""The same fits under other names, at other times and in other formats: what is said of a folder stays the same."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradtrend.cli.exit_codes import exit_code
from gradtrend.model.report import Policy
from gradtrend.pipeline.analyze import analyze_paths
from gradtrend.pipeline.runs import AnalyzeOptions
from tests.ingest.runs.writers import KINDS, Fit, console, csv, events, fit, hf_console, jsonl

NAMES = (
    "a",
    "z",
    "run_2",
    "run_10",
    "exp",
    "exp_new",
    "lr0.1",
    "seed1",
    "latest",
    "best",
    "old",
    "tb",
    "test",
    "train2",
)
Write = Callable[[Path, Fit], object]
FORMATS: tuple[Write, ...] = (
    lambda folder, one: jsonl(folder / "metrics.jsonl", one),
    lambda folder, one: csv(folder / "metrics.csv", one),
    lambda folder, one: console(folder / "train.log", one),
    lambda folder, one: hf_console(folder / "out.log", one),
    events,
)
SUFFIXES: dict[str, Callable[..., None]] = {".jsonl": jsonl, ".csv": csv, ".log": console}
SEVERAL = st.lists(st.sampled_from(KINDS), min_size=2, max_size=4)
RESUMED = ("lightning_logs/version_{}", "runs/Jan0{}_10-00-00_host", "tb", "2026010{}_100000/vis_data", "part{}")


def said(root: Path) -> tuple[Counter[str], int]:
    """How often each verdict is given below a folder, and the exit code."""
    reports, failures = analyze_paths((str(root),), AnalyzeOptions())
    return Counter(str(report.verdict) for report in reports), exit_code(reports, failures, Policy())


@settings(max_examples=40, deadline=None)
@given(
    kinds=SEVERAL,
    seeds=st.permutations(range(4)),
    names=st.permutations(NAMES),
    writers=st.lists(st.sampled_from(FORMATS), min_size=4, max_size=4),
    times=st.permutations((0, 60, 3600, 90000)),
    same_seed=st.booleans(),
)
def test_a_folder_a_fit(
    tmp_path_factory: pytest.TempPathFactory,
    kinds: list[str],
    seeds: list[int],
    names: list[str],
    writers: list[Write],
    times: list[int],
    same_seed: bool,
) -> None:
    root = tmp_path_factory.mktemp("runs")
    if same_seed:  # equal seeds agree until their kinds part, and a fit that is there twice is a copy
        kinds = list(dict.fromkeys(kinds))
    for i, kind in enumerate(kinds):
        one = fit(kind, 0 if same_seed else seeds[i])
        writers[i](root / names[i], one.at(one.began + times[i]))
        for file in (root / names[i]).iterdir():
            os.utime(file, (times[i], times[i]))
    verdicts, code = said(root)
    assert verdicts == Counter(kinds)
    assert code == (0 if set(kinds) == {"stable"} else 1)


@settings(max_examples=30, deadline=None)
@given(kinds=SEVERAL, names=st.permutations(NAMES), suffix=st.sampled_from(list(SUFFIXES)))
def test_fits_side_by_side_in_one_folder(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], names: list[str], suffix: str
) -> None:
    root = tmp_path_factory.mktemp("flat")
    for i, kind in enumerate(kinds):
        SUFFIXES[suffix](root / f"{names[i]}{suffix}", fit(kind, i))
    assert said(root)[0] == Counter(kinds)


@settings(max_examples=30, deadline=None)
@given(kinds=SEVERAL, suffix=st.sampled_from(list(SUFFIXES)))
def test_fits_one_after_another_in_one_log(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], suffix: str
) -> None:
    path = tmp_path_factory.mktemp("appended") / f"all{suffix}"
    SUFFIXES[suffix](path, *(fit(kind, i) for i, kind in enumerate(kinds)))
    assert said(path)[0] == Counter(kinds)


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    cuts=st.lists(st.integers(5, 85), min_size=1, max_size=3, unique=True),
    back=st.integers(0, 4),
    places=st.sampled_from(RESUMED),
    reverse=st.booleans(),
)
def test_a_run_resumed_into_further_folders(
    tmp_path_factory: pytest.TempPathFactory, kind: str, cuts: list[int], back: int, places: str, reverse: bool
) -> None:
    root = tmp_path_factory.mktemp("resumed")
    one = fit(kind, 5, 90)
    bounds = [0, *sorted(cuts), 90]
    for i, (first, end) in enumerate(pairwise(bounds)):
        number = len(bounds) - i if reverse else i + 1  # the names may run against the time
        begin = max(0, first - back) if i else 0
        events(root / places.format(number), one.between(begin, end, after=1000 * i), number)
    assert said(root)[0] == Counter([kind])
