"""What whole commands on captures cost: inspecting, a small replay beside `import torch`, the memory of a large one."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gradtrend.recording import save_capture, snapshot_random_states
from tests.places import ROOT
from tests.processes import SOURCE

pytestmark = pytest.mark.benchmark

MODEL = """
from torch import nn

def make(width, depth):
    return nn.Sequential(*[nn.Linear(width, width) for _ in range(depth)]), lambda m, b: m(b["x"]).square().mean()
"""
MIB = 1024 * 1024


def captured(folder: Path, width: int, depth: int) -> Path:
    (folder / "made.py").write_text(MODEL)
    space: dict[str, object] = {}
    exec(MODEL, space)
    model = space["make"](width, depth)[0]  # type: ignore[operator]
    x = torch.randn(4, width)
    x[1, 0] = torch.nan
    return save_capture(
        folder / "a.gradtrend.pt",
        model=model,
        factory="made:make",
        kwargs={"width": width, "depth": depth},
        microbatches=[{"x": x}],
        step=1,
        rng_states=snapshot_random_states(),
        bad_parameters=["0.weight"],
    )


def cost(folder: Path, *words: str) -> tuple[float, int]:
    """Processor seconds and peak bytes of `python WORDS`, of the fastest of three."""
    found = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (SOURCE, ROOT, folder)))}
        done = subprocess.run(
            [sys.executable, "-c", WATCH, sys.executable, *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, int(done.stdout)))
    return min(seconds for seconds, _ in found), min(peak for _, peak in found)


WATCH = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


def test_inspecting_takes_less_than_80_mb(tmp_path: Path) -> None:
    path = captured(tmp_path, 2048, 16)
    seconds, peak = cost(tmp_path, "-m", "gradtrend", "replay", str(path))
    print(f"inspecting {path.stat().st_size / MIB:.0f} MiB: {seconds:.2f} s of a processor, {peak / MIB:.0f} MiB")
    assert peak < 80 * MIB
    assert seconds < 1.0


def test_a_small_replay_takes_at_most_half_more_than_importing_torch(tmp_path: Path) -> None:
    path = captured(tmp_path, 16, 3)
    plain, _ = cost(tmp_path, "-c", "import torch")
    seconds, _ = cost(tmp_path, "-m", "gradtrend", "replay", str(path), "--trust")
    print(f"import torch {plain:.2f} s, replay {seconds:.2f} s, ratio {seconds / plain:.2f}")
    assert seconds <= 1.5 * plain


def test_a_large_replay_takes_at_most_three_times_its_size(tmp_path: Path) -> None:
    path = captured(tmp_path, 4096, 16)
    size = path.stat().st_size
    _, peak = cost(tmp_path, "-m", "gradtrend", "replay", str(path), "--trust")
    print(f"{size / MIB:.0f} MiB: peak {peak / MIB:.0f} MiB, {peak / size:.2f} times")
    assert peak <= 3 * size
