"""Which of several losses of a run is its loss."""

import json
from pathlib import Path

import gradtrend


def losses(folder: Path, rows: list[dict[str, float]]) -> list[str]:
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return [s.metric for s in gradtrend.analyze(folder).series if s.role == "loss"]


def test_of_two_names_for_the_whole_loss_the_one_with_more_points_counts(tmp_path: Path) -> None:
    rows = [{"step": i, "grad_norm": 1.0 + i % 3, "loss": 3.0 - i / 20} for i in range(20)]
    rows[5]["total_loss"] = 2.9
    assert losses(tmp_path, rows) == ["loss"]


def test_a_part_is_no_loss_where_the_total_is_logged(tmp_path: Path) -> None:
    rows = [{"step": i, "grad_norm": 1.0 + i % 3, "loss_cls": 1.0, "loss_bbox": 2.0, "loss": 3.0} for i in range(20)]
    assert losses(tmp_path, rows) == ["loss"]
