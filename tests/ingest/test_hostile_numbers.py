"""Numbers and names that no counter or text can be: read as unknown, never a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradtrend.ingest.reading.columns import Column, points_of
from gradtrend.ingest.settings.folder import settings_of
from gradtrend.pipeline.analyze import analyze_paths
from gradtrend.pipeline.runs import AnalyzeOptions

HUGE = "9" * 5000


def analyzed(path: Path) -> str:
    reports, failures = analyze_paths((str(path),), AnalyzeOptions())
    assert not [failure.bug for failure in failures if failure.bug]
    return str(reports[0].verdict) if reports else "failure"


@pytest.mark.parametrize("step", [2**63, -(2**70), 10**400])
def test_a_step_beyond_64_bits_is_no_step(step: int) -> None:
    column = Column()
    column.add(step, 1.0, None, 1)
    column.add(7, 2.0, None, 2)
    assert points_of({"grad_norm": column})["grad_norm"]["step"].to_list() == [None, 7]


def test_a_name_with_a_lone_surrogate_is_shown_escaped() -> None:
    column = Column()
    column.add(1, 1.0, None, 1)
    assert list(points_of({"grad\udc80norm": column})) == ["grad\\udc80norm"]


@pytest.mark.parametrize("head", ["step {n}", "Epoch [1][{n}/20]", "[rank{n}]: step 1", "step 1/{n}"])
def test_console_counters(tmp_path: Path, head: str) -> None:
    line = head.format(n=HUGE) + " loss 2.0 grad_norm 1.0\n"
    (tmp_path / "train.log").write_text(line * 3 + "step 5 loss 2.0 grad_norm 1.0\n" * 3)
    assert analyzed(tmp_path) in {"undetermined", "stable"}


@pytest.mark.parametrize(
    "text",
    ["lr: &a [*a]\n", "a: &b {c: *b}\n", "lr: !!int 0b\n", "lr: !!bool x\n", "when: !!timestamp x\n", f"lr: {HUGE}\n"],
)
def test_settings_files(tmp_path: Path, text: str) -> None:
    (tmp_path / "hparams.yaml").write_text(text)
    settings_of(tmp_path)


@pytest.mark.parametrize(
    "line", [f"start_time: {HUGE}", "start_time: !!timestamp x", f"run_name: {HUGE}", "run_id: []"]
)
def test_metadata_of_an_mlflow_run(tmp_path: Path, line: str) -> None:
    run = tmp_path / "mlruns/1/abc"
    (run / "metrics").mkdir(parents=True)
    (run / "meta.yaml").write_text(f"run_id: abc\nlifecycle_stage: active\n{line}\n")
    (run / "metrics/grad_norm").write_text("".join(f"{i} {1 + i % 3 / 9} {i}\n" for i in range(20)))
    (run / "metrics/loss").write_text("".join(f"{i} {2 - i / 20} {i}\n" for i in range(20)))
    assert analyzed(tmp_path) in {"stable", "failure"}  # a run without readable metadata is none


def test_an_overflow_report_of_an_impossible_batch(tmp_path: Path) -> None:
    (tmp_path / "debug").mkdir()
    (tmp_path / "debug/underflow_overflow_rank0.log").write_text(f"Detected inf/nan during batch_number={HUGE}\n")
    (tmp_path / "metrics.jsonl").write_text(
        "\n".join(json.dumps({"step": i, "grad_norm": 1 + i % 3 / 9, "loss": 2 - i / 20}) for i in range(20))
    )
    assert analyzed(tmp_path) == "stable"
