"""Speed and memory of reading long console logs, against `grep -c grad` on the same file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gradtrend.ingest.formats.console import reader as console
from gradtrend.ingest.reading import ReadOptions

pytestmark = pytest.mark.benchmark

QUIET = (
    "2026-01-01 17:55:07,680 - data.loader - INFO - worker 3 prefetched shard 00123 of 04096 in 0.3241s (queue 12/16)\n"
    "\rEpoch 3:  45%|████▌     | 450/1000 [00:12<00:15, 36.1it/s]\rEpoch 3:  45%|████▌     | 451/1000 [00:12<00:15]\n"
)
LOGGED = "step {0} | loss {1:.4f} | grad_norm {2:.4f} | lr 3.00e-04 | 202.14 ms\n"


def write(path: Path, megabytes: int, every: int) -> Path:
    """A log of that size in which one of `every` pairs of lines is followed by a logged one (0: none)."""
    with path.open("w") as file:
        size = i = 0
        while size < megabytes << 20:
            i += 1
            block = QUIET * 1000
            if every:
                block += "".join(LOGGED.format(i * 1000 + j, 2.0, 1.0) for j in range(1000 // every))
            size += file.write(block)
    return path


def seconds(command: Callable[[], object]) -> float:
    """Processor time of this process and of what it starts: other load on the machine must not count."""
    start = os.times()
    command()
    return sum(os.times()[:4]) - sum(start[:4])


def test_a_log_that_matches_nothing_runs_at_100_megabytes_a_second(tmp_path: Path) -> None:
    path = write(tmp_path / "train.log", 256, every=0)
    size = path.stat().st_size / 1e6
    grep = min(seconds(lambda: subprocess.run(["grep", "-c", "grad", path], check=False)) for _ in range(3))
    ours = min(seconds(lambda: console.read(path, ReadOptions())) for _ in range(3))
    print(f"{size / ours:.0f} MB/s, {ours / grep:.1f} times the time of grep -c")
    assert size / ours >= 100
    assert ours / grep < 20  # so that a slow machine, where 100 MB/s may be out of reach, still tells


def test_memory_is_bounded_by_what_is_logged(tmp_path: Path) -> None:
    path = write(tmp_path / "train.log", 1024, every=100)
    code = """
import pathlib, resource, sys
from gradtrend.ingest.formats.console.reader import read
from gradtrend.ingest.reading import ReadOptions
(reading,) = read(pathlib.Path(sys.argv[1]), ReadOptions())
points = sum(series.height for series in reading.series.values())
print(points, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)
    points, megabytes = map(int, done.stdout.split())
    print(f"{points} points, {megabytes} MiB")
    assert points > 10_000
    assert megabytes < 1000
