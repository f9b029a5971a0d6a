"""Last words and settings belong to one run: those of another part, another run or another folder are not its own."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from gradtrend.model.report import RunReport
from gradtrend.pipeline.analyze import analyze_paths
from gradtrend.pipeline.runs import AnalyzeOptions
from tests.ingest.runs.writers import console, fit

STOPS = "Loss is nan, stopping training"


def reports(path: Path) -> list[RunReport]:
    found, failures = analyze_paths((str(path),), AnalyzeOptions())
    assert not failures
    return list(found)


def rules(report: RunReport) -> set[str]:
    return {finding.rule for finding in report.findings}


@pytest.mark.parametrize("goes_on", [True, False], ids=["resumed", "not resumed"])
def test_the_last_words_of_a_rotated_piece_are_none_of_the_run(tmp_path: Path, goes_on: bool) -> None:
    one = fit("stable", 1, 90)
    console(tmp_path / "train.log.1", one.between(0, 45), tail=STOPS)
    if goes_on:
        console(tmp_path / "train.log", one.between(40, 90), head="resumed from checkpoint")
    (report,) = reports(tmp_path)
    assert ("GT521" in rules(report)) is not goes_on
    assert (str(report.verdict) == "nan-collapse") is not goes_on


def test_the_last_words_of_a_log_are_of_its_last_fit(tmp_path: Path) -> None:
    console(tmp_path / "train.log", fit("stable", 1), fit("stable", 2), tail="")
    with (tmp_path / "train.log").open("a") as log:
        log.write(STOPS + "\n")
    first, second = reports(tmp_path / "train.log")
    assert not rules(first) & {"GT521", "GT529"}
    assert "GT521" in rules(second)


def test_a_pipe_with_two_fits_is_two_runs(tmp_path: Path) -> None:
    console(tmp_path / "train.log", fit("stable", 1), fit("exploding", 2))
    text = (tmp_path / "train.log").read_bytes()
    pipe = tmp_path / "pipe.log"
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(text,))
    writer.start()
    found = reports(pipe)
    writer.join()
    assert [str(report.verdict) for report in found] == ["stable", "exploding"]


def test_settings_below_a_single_log_are_not_its_own(tmp_path: Path) -> None:
    console(tmp_path / "train.log", fit("stable", 1))
    other = tmp_path / "lightning_logs" / "version_7"
    other.mkdir(parents=True)
    (other / "hparams.yaml").write_text("lr: 0.5\nbatch_size: 3\n")
    (alone,) = reports(tmp_path / "train.log")
    assert alone.settings.learning_rate is None
    assert alone.settings.framework is None
    (tmp_path / "hparams.yaml").write_text("lr: 0.25\n")
    (beside,) = reports(tmp_path / "train.log")
    assert beside.settings.learning_rate == 0.25


def test_settings_in_a_folder_of_several_runs_are_of_none(tmp_path: Path) -> None:
    console(tmp_path / "a.log", fit("stable", 1))
    console(tmp_path / "b.log", fit("stable", 2))
    (tmp_path / "args.json").write_text('{"lr": 0.5}')
    assert [report.settings.learning_rate for report in reports(tmp_path)] == [None, None]
