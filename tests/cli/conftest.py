"""Logs written by hand, and the command line called as a user calls it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gradtrend.cli import main
from tests.places import EXPLODING


def _write(folder: Path, norms: Sequence[float]) -> Path:
    folder.mkdir(parents=True)
    rows = [{"step": step, "grad_norm": norm, "loss": 2.0 - 0.01 * step} for step, norm in enumerate(norms)]
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


@pytest.fixture
def call() -> Callable[..., Result]:
    """`call("analyze", path)` runs gradtrend in this process."""
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def exploding() -> Path:
    """A real run that explodes."""
    return EXPLODING


@pytest.fixture
def stable(tmp_path: Path) -> Path:
    """A run whose norm moves within 10 % for 100 steps."""
    return _write(tmp_path / "stable", [1.0 + 0.1 * math.sin(step) for step in range(100)])


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """A run of two points: too little for a verdict."""
    return _write(tmp_path / "short", [1.0, 1.1])
