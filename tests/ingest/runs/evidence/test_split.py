"""Files side by side that are runs of their own, and those that are not."""

from __future__ import annotations

import json
from pathlib import Path

from gradtrend.pipeline.analyze import analyze_paths
from gradtrend.pipeline.runs import AnalyzeOptions


def verdicts(folder: Path) -> dict[str, str]:
    reports, failures = analyze_paths((str(folder),), AnalyzeOptions())
    assert not failures
    return {Path(report.run).name: str(report.verdict) for report in reports}


def csv(path: Path, norms: list[float], first: int = 0) -> None:
    rows = "".join(f"{i},{2 + i % 3 / 99},{norm}\n" for i, norm in enumerate(norms, start=first))
    path.write_text("step,loss,grad_norm\n" + rows)


def steady(points: int) -> list[float]:
    return [1 + i % 4 / 9 for i in range(points)]


def test_each_complete_run_in_a_flat_folder_is_judged(tmp_path: Path) -> None:
    csv(tmp_path / "a.csv", [1.1**i for i in range(60)])
    csv(tmp_path / "b.csv", [*steady(30), *[float("nan")] * 30])
    csv(tmp_path / "c.csv", steady(60))
    assert verdicts(tmp_path) == {"a.csv": "exploding", "b.csv": "nan-collapse", "c.csv": "stable"}


def test_the_parts_of_one_run_stay_together(tmp_path: Path) -> None:
    csv(tmp_path / "part1.csv", steady(40))
    csv(tmp_path / "part2.csv", steady(40), first=40)
    assert verdicts(tmp_path) == {tmp_path.name: "stable"}


def test_copies_and_other_ranks_stay_together(tmp_path: Path) -> None:
    csv(tmp_path / "rank0.csv", steady(40))
    csv(tmp_path / "rank1.csv", [norm * 1.001 for norm in steady(40)])
    assert verdicts(tmp_path) == {tmp_path.name: "stable"}


def test_a_validation_log_beside_the_training_log_is_no_run(tmp_path: Path) -> None:
    csv(tmp_path / "train.csv", steady(40))
    (tmp_path / "val.csv").write_text("step,val_loss\n" + "".join(f"{i},{1 + i}\n" for i in range(40)))
    assert verdicts(tmp_path) == {tmp_path.name: "stable"}


def test_a_step_that_restarts_with_the_epoch_counts_through_the_run(tmp_path: Path) -> None:
    norms = [*steady(124), *[1.2**i for i in range(76)]]
    rows = [
        {"epoch": i // 50, "step": i % 50, "loss": 2 + max(0, i - 124), "grad_norm": n} for i, n in enumerate(norms)
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (report,), _ = analyze_paths((str(tmp_path),), AnalyzeOptions())
    (norm,) = (series for series in report.series if series.role == "grad_norm")
    assert (report.verdict, norm.points, norm.last_step) == ("exploding", 200, 199)
    assert norm.onset_step is not None
    assert abs(norm.onset_step - 124) <= 10
    assert "GT511" not in {finding.rule for finding in report.findings}


def test_a_resumed_run_with_epochs_is_no_restart(tmp_path: Path) -> None:
    steps = [*range(80), *range(50, 120)]
    rows = [{"epoch": step // 40, "step": step, "loss": 2.0, "grad_norm": 1 + step % 4 / 9} for step in steps]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (report,), _ = analyze_paths((str(tmp_path),), AnalyzeOptions())
    assert report.series[0].last_step == 119
    assert "GT511" in {finding.rule for finding in report.findings}
