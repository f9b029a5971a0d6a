"""A capture beside its run's log: the log says what a usual step is; what was replayed is not advised again."""

from __future__ import annotations

import json
import math
from pathlib import Path

from gradtrend.model.replay import Outcome, ReplayCause
from gradtrend.pipeline.programs.one_by_one import analyze_run
from gradtrend.pipeline.replay import replay_path
from gradtrend.pipeline.runs import AnalyzeOptions
from gradtrend.replay import ReplayOptions
from tests.replay import steps
from tests.replay.steps import batch, capture, replayed_one

TRUSTED = ReplayOptions(device="cpu", trust=True)


def run_with(folder: Path, usual: float, bad: float | None = None) -> Path:
    norms = [usual * (1 + 0.1 * math.sin(step)) for step in range(40)] + ([bad] * 3 if bad is not None else [])
    rows = [{"step": step, "grad_norm": norm, "loss": 2.0 - 0.01 * step} for step, norm in enumerate(norms)]
    folder.mkdir(exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


def steep_capture(run: Path, norm: float | None) -> Path:
    recorded = {"bad_parameters": [], "gradient_norm": norm, "autocast": None}
    return capture(run / "debug" / "step40.gradtrend.pt", steps.steep, [batch()], {"factor": 1e3}, **recorded)


def test_the_log_tells_an_explosion_from_a_healthy_step(tmp_path: Path) -> None:
    norm = replayed_one(steep_capture(tmp_path / "measured", None)).sweep[0].gradient_norm
    assert norm is not None
    for name, usual, outcome, cause in (
        ("small", norm / 100, Outcome.CONFIRMED, ReplayCause.EXPLOSION),
        ("alike", norm, Outcome.NOT_REPRODUCED, None),
    ):
        run = run_with(tmp_path / name, usual)
        path = steep_capture(run, norm)
        for given in (run, path):  # a capture given by itself belongs to the run that it lies in
            (result,) = replay_path(str(given), TRUSTED)
            assert (result.outcome, result.cause) == (outcome, cause)
            assert result.usual_norm is not None
    (alone,) = replay_path(str(tmp_path / "measured"), TRUSTED)
    assert (alone.outcome, alone.usual_norm) == (Outcome.NOT_REPRODUCED, None)


def test_what_was_replayed_is_not_advised_to_be_replayed(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", 1.0, bad=math.nan)
    capture(run / "debug" / "step40.gradtrend.pt", steps.log_of_zero, [batch()], autocast=None, step=40)
    before = analyze_run(str(run), AnalyzeOptions())
    assert "capture-and-replay" in [advice.action for advice in before.next]
    after = analyze_run(str(run), AnalyzeOptions(replay=True, trust=True))
    assert "GT604" in [finding.rule for finding in after.findings]
    assert "capture-and-replay" not in [advice.action for advice in after.next]
    untrusted = analyze_run(str(run), AnalyzeOptions(replay=True))
    assert "capture-and-replay" in [advice.action for advice in untrusted.next]
