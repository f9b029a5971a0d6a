"""A path in, reports out: one run through every kind of log, folders of runs, failures as values."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradtrend.errors import ConfigError
from gradtrend.model.report import RunReport
from gradtrend.pipeline import failures, runs
from gradtrend.pipeline.analyze import analyze_paths
from gradtrend.pipeline.runs import AnalyzeOptions
from gradtrend.pipeline.series import read_path
from tests.places import EXPLODING, LIGHTLY


def one(path: Path, **options: Any) -> RunReport:
    (report,), failures = analyze_paths((str(path),), AnalyzeOptions(**options))
    assert failures == ()
    return report


def said(report: RunReport) -> tuple[Any, ...]:
    """What must not depend on the logger: verdict, onset, non-finite steps, cause."""
    norm = next(series for series in report.series if series.trend is not None and series.layer is None)
    assert report.nonfinite is not None
    return (
        report.verdict, norm.onset_step, norm.points, norm.last_step, report.nonfinite.grad_first_step,
        report.nonfinite.loss_first_step, report.nonfinite.grad_count, report.nonfinite.order, report.nonfinite.cause,
    )  # fmt: skip


def metrics_alone(folder: Path) -> Path:
    return Path(shutil.copy(EXPLODING / "metrics.jsonl", folder))


def events_alone(folder: Path) -> Path:
    shutil.copy(next(EXPLODING.glob("events.*")), folder)
    return folder


def database_alone(folder: Path) -> Path:
    return Path(shutil.copy(EXPLODING / "mlflow.db", folder))


def files_alone(folder: Path) -> Path:
    """The run of the database as MLflow's file store writes it."""
    store = folder / "mlruns"
    with sqlite3.connect(f"file:{EXPLODING / 'mlflow.db'}?mode=ro", uri=True) as database:
        ((run, start, experiment),) = database.execute(
            "SELECT run_uuid, start_time, experiment_id FROM runs"
        ).fetchall()
        metrics = database.execute(
            "SELECT key, timestamp, value, is_nan, step FROM metrics ORDER BY timestamp"
        ).fetchall()
        params = database.execute("SELECT key, value FROM params").fetchall()
    database.close()
    place = store / str(experiment) / run
    for kind in ("metrics", "params"):
        (place / kind).mkdir(parents=True)
    (place.parent / "meta.yaml").write_text(f"experiment_id: '{experiment}'\nname: x\nlifecycle_stage: active\n")
    (place / "meta.yaml").write_text(f"run_id: {run}\nrun_name: x\nstart_time: {start}\nlifecycle_stage: active\n")
    for key, time, value, is_nan, step in metrics:
        number = "nan" if is_nan else "inf" if value > 1.7e308 else "-inf" if value < -1.7e308 else repr(value)
        path = place / "metrics" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(f"{time} {number} {step}\n")
    for key, value in params:
        path = place / "params" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value)
    return store


@pytest.mark.parametrize("logger", [metrics_alone, events_alone, database_alone, files_alone])
def test_one_run_read_four_ways_is_judged_the_same(tmp_path: Path, logger: Callable[[Path], Path]) -> None:
    path = logger(tmp_path)
    expected = said(one(EXPLODING))
    assert expected[0] == "exploding"
    assert said(one(path)) == expected
    assert {source.format for source in one(tmp_path).sources} == {source.format for source in one(path).sources}
    assert len(one(tmp_path).sources) == 1


def test_the_loggers_of_one_folder_are_read_alone_with_source() -> None:
    for source in ("jsonl", "tensorboard", "mlflow"):
        report = one(EXPLODING, source=source)
        assert [read.format for read in report.sources] == [source]
        assert said(report) == said(one(EXPLODING))


def test_the_console_log_counts_from_one() -> None:
    """train.log's steps are one later; the rest is the same."""
    console, full = said(one(EXPLODING, source="console")), said(one(EXPLODING))
    assert console[0] == full[0]
    assert console[2] == full[2]


def test_a_folder_of_runs_is_judged_run_by_run(tmp_path: Path) -> None:
    for name, case in (("b", "sparse"), ("a", "exploding_lr_nan")):
        shutil.copytree(LIGHTLY / case, tmp_path / name)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "metrics.jsonl").write_bytes(b"\xff" * 100)
    (tmp_path / "truth.jsonl").write_text('{"case": "a", "verdict": ["stable"]}\n')
    reports, failures = analyze_paths((str(tmp_path),), AnalyzeOptions())
    assert [report.run for report in reports] == [str(tmp_path / "a"), str(tmp_path / "b")]
    (failure,) = failures
    assert (failure.path, failure.bug) == (str(tmp_path / "c"), None)
    assert "no line is a JSON object" in failure.message


def test_a_bug_is_a_failure_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*words: object) -> object:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(runs, "load_run", breaks)
    reports, (failure,) = analyze_paths((str(EXPLODING),), AnalyzeOptions())
    assert reports == ()
    assert "ZeroDivisionError: by zero" in failure.message
    assert "breaks" in (failure.bug or "")
    monkeypatch.setattr(failures, "find_runs", breaks)
    _, (failure,) = analyze_paths((str(EXPLODING),), AnalyzeOptions())
    assert failure.path == str(EXPLODING)
    assert failure.bug is not None


def test_wrong_options_are_errors_before_anything_is_read() -> None:
    for options in (
        {"source": "jason"},
        {"select": ("GT9999",)},
        {"ignore": ("nonsense",)},
        {"rules_dir": Path("gone")},
    ):
        with pytest.raises(ConfigError):
            analyze_paths(("missing",), AnalyzeOptions(**options))


def test_reading_without_judging() -> None:
    (log,), failures = read_path(str(EXPLODING), AnalyzeOptions())
    assert failures == ()
    assert log.run == str(EXPLODING)
    assert {"grad_norm", "loss", "lr"} <= set(log.table["role"])
    assert read_path("gone", AnalyzeOptions())[1][0].path == "gone"
