"""How often a verdict is right, by its confidence, on labelled runs.

    python -m tests.benchmarks.confidence [FOLDER ...]

Wanted: of the runs at 0.9 or above at least 99 % right, at least 70 % of the judged runs there, most misses below.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from tests.benchmarks.labelled import LABELLED, labelled

EDGES = (0.0, 0.5, 0.7, 0.8, 0.9, 1.0)
SURE = 0.9


@dataclass(frozen=True)
class Answer:
    """One verdict: its run, how sure it was (None: undetermined), whether it was right."""

    name: str
    verdict: str
    confidence: float | None
    right: bool


def answers(folders: Iterable[Path], scratch: Path) -> list[Answer]:
    """The verdicts on all runs of the folders."""
    found = []
    for run in labelled(folders, scratch):
        report = run.judged()
        found.append(Answer(run.name, report.verdict, report.confidence, report.verdict in run.accepted))
    return found


def table(found: Sequence[Answer]) -> str:
    """Runs and right verdicts a bin, the undetermined ones last, and the misses by name."""
    lines = ["confidence    runs   right"]
    judged = [answer for answer in found if answer.confidence is not None]
    for low, high in pairwise(EDGES):
        inside = [a for a in judged if low <= a.confidence < high or (high == EDGES[-1] and a.confidence == high)]  # type: ignore[operator]
        lines.append(_line(f"{low:.1f} to {high:.1f}", inside))
    lines.append(_line("undetermined", [a for a in found if a.confidence is None]))
    lines += [f"miss: {a.name} {a.verdict} {a.confidence}" for a in found if not a.right]
    return "\n".join(lines)


def _line(label: str, inside: Sequence[Answer]) -> str:
    right = sum(a.right for a in inside)
    return f"{label:12} {len(inside):5}   {right:5}" + (f"  {right / len(inside):6.1%}" if inside else "")


@pytest.mark.benchmark
def test_sure_verdicts_are_right(tmp_path: Path) -> None:
    found = answers(LABELLED, tmp_path)
    print(table(found))
    judged = [a for a in found if a.confidence is not None]
    sure = [a for a in judged if (a.confidence or 0.0) >= SURE]
    assert sum(a.right for a in sure) >= 0.99 * len(sure)
    assert len(sure) >= 0.7 * len(judged)


def main() -> None:
    """Print one table for all folders together."""
    with tempfile.TemporaryDirectory() as scratch:
        print(table(answers([Path(name) for name in sys.argv[1:]] or LABELLED, Path(scratch))))


if __name__ == "__main__":
    main()
