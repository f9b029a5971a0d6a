"""How near the onset is to the labelled one, how long before NaN the alarm comes, and how often it comes for nothing.

    python -m tests.benchmarks.onset_lead [FOLDER ...]

"Would have come": the log is cut after each logged norm and judged as if the run were still going on.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl
import pytest

from gradtrend.model.words import Cause, Role, Verdict
from tests.benchmarks.labelled import ALARMS, LABELLED, Labelled, labelled

PREFIXES = 20  # evenly spaced cuts of a run that is healthy so far


@dataclass(frozen=True)
class Onset:
    """Distance of the onset from the labelled one, in logged points and as a share of the run."""

    name: str
    points: float
    share: float


@dataclass(frozen=True)
class Lead:
    """How long before the first non-finite value the run was called exploding; 0 if not before it."""

    name: str
    steps: int
    points: int


def norm_steps(run: Labelled) -> list[int]:
    """The steps with a logged gradient norm, ascending."""
    norms = run.log.table.filter(pl.col("role") == Role.GRAD_NORM.value)
    return sorted(int(step) for step in norms["step"].unique())


def onset_of(run: Labelled) -> Onset | None:
    """The distance for a run with a labelled onset and a right verdict on its total norm."""
    report, truth = run.judged(), run.truth.get("onset")
    found = [s.onset_step for s in report.series if s.layer is None and s.onset_step is not None]
    if truth is None or not found or report.verdict not in run.accepted:
        return None
    steps = np.array(norm_steps(run))
    nearest = min(found, key=lambda step: abs(step - truth))
    points = abs(int(np.searchsorted(steps, nearest)) - int(np.searchsorted(steps, truth)))
    return Onset(run.name, points, abs(nearest - truth) / max(1, int(steps[-1] - steps[0])))


def lead_of(run: Labelled) -> Lead | None:
    """The lead of a run that ends in NaN or inf after an explosion."""
    if run.truth.get("cause") != Cause.AFTER_EXPLOSION:
        return None
    firsts = [run.truth.get(key) for key in ("grad_nonfinite", "loss_nonfinite")]
    end = min(step for step in firsts if step is not None)
    onset = run.truth.get("onset") or 0
    before = [step for step in norm_steps(run) if step < end]
    alarm = next((s for s in before if s >= onset and run.judged(s).verdict is Verdict.EXPLODING), end)
    return Lead(run.name, end - alarm, sum(step >= alarm for step in before))


def false_prefixes(run: Labelled) -> tuple[int, int] | None:
    """(alarms, prefixes judged) of a healthy run, or of a run with a labelled onset until just before it."""
    onset = run.truth.get("onset")
    if not run.healthy and onset is None:
        return None
    steps = [step for step in norm_steps(run) if run.healthy or step < onset]
    if not steps:
        return None
    cuts = sorted({steps[int(i)] for i in np.linspace(0, len(steps) - 1, PREFIXES)})
    return sum(run.judged(cut).verdict in ALARMS for cut in cuts), len(cuts)


def summary(runs: Sequence[Labelled]) -> str:
    """What the benchmark prints."""
    onsets = [o for o in map(onset_of, runs) if o is not None]
    leads = [lead for lead in map(lead_of, runs) if lead is not None]
    prefixes = {run.name: counts for run in runs if (counts := false_prefixes(run)) is not None}
    lines = []
    if onsets:
        far = max(onsets, key=lambda o: o.share)
        lines.append(f"onset, {len(onsets)} runs: off by {median(o.points for o in onsets):.0f} points in the median,")
        lines.append(f"  worst {far.points:.0f} points, {far.share:.1%} of the run ({far.name})")
    if leads:
        short = min(leads, key=lambda lead: lead.points)
        in_time = sum(lead.steps > 0 for lead in leads)
        lines.append(f"explosion then NaN, {len(leads)} runs: called exploding before the NaN in {in_time},")
        lines.append(f"  {median(lead.steps for lead in leads):.0f} steps ahead in the median")
        lines.append(
            f"  ({median(lead.points for lead in leads):.0f} logged points), worst {short.steps} ({short.name})"
        )
    if prefixes:
        alarms, judged = (sum(column) for column in zip(*prefixes.values(), strict=True))
        runs_hit = [name for name, (count, _) in prefixes.items() if count]
        lines.append(f"healthy so far, {judged} prefixes of {len(prefixes)} runs: {alarms} alarms,")
        lines.append(f"  in {len(runs_hit)} runs: {', '.join(runs_hit) or 'none'}")
    return "\n".join(lines)


@pytest.mark.benchmark
def test_onsets_are_near_and_alarms_early(tmp_path: Path) -> None:
    runs = list(labelled(LABELLED, tmp_path))
    print(summary(runs))
    onsets = [o for o in map(onset_of, runs) if o is not None]
    assert sum(o.points <= 5 or o.share <= 0.03 for o in onsets) >= 0.95 * len(onsets)


def main() -> None:
    """Print the summary of all folders together."""
    with tempfile.TemporaryDirectory() as scratch:
        print(summary(list(labelled([Path(name) for name in sys.argv[1:]] or LABELLED, Path(scratch)))))


if __name__ == "__main__":
    main()
