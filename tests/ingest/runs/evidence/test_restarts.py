"""One log with several fits, and those that only look so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradtrend.ingest.formats.console.reader import read as read_console
from gradtrend.ingest.formats.jsonl.reader import read as read_jsonl
from gradtrend.ingest.reading import ReadOptions
from gradtrend.ingest.runs.evidence.borders import borders, says_resumed
from gradtrend.ingest.runs.evidence.restarts import fits_in
from tests.ingest.runs.writers import console, fit, hf_console, jsonl

STEPLESS = "loss {loss:.4f}, grad norm {norm:.4f}"


def fits(path: Path) -> list[tuple[int, int, int]]:
    """Rows, first and last step of the norm in each fit of a log."""
    read = read_jsonl if path.suffix == ".jsonl" else read_console
    (reading,) = read(path, ReadOptions())
    found = []
    for one in fits_in(reading):
        norm = next(points for metric, points in one.series.items() if "norm" in metric)
        found.append((norm.height, int(norm["step"][0]), int(norm["step"][-1])))
    return found


def test_other_values_from_the_first_step_are_another_fit(tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", fit("stable", 1, 30), fit("stable", 2, 20))
    assert fits(tmp_path / "a.jsonl") == [(30, 0, 29), (20, 0, 19)]


def test_the_second_may_have_begun_just_now(tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", fit("stable", 1, 30), fit("stable", 2, 30).between(0, 2))
    assert fits(tmp_path / "a.jsonl") == [(30, 0, 29), (2, 0, 1)]


def test_the_second_may_log_at_another_pace(tmp_path: Path) -> None:
    second = fit("stable", 2, 80).between(20, 80).every(20)
    jsonl(tmp_path / "a.jsonl", fit("stable", 1, 60).between(5, 60).every(5), second)
    assert [rows for rows, *_ in fits(tmp_path / "a.jsonl")] == [11, 3]


@pytest.mark.parametrize("back", [10, 25])
def test_a_return_to_a_checkpoint_is_no_other_fit(tmp_path: Path, back: int) -> None:
    jsonl(tmp_path / "a.jsonl", fit("nan-collapse", 1, 30), fit("stable", 2, 60).between(back, 60))
    assert len(fits(tmp_path / "a.jsonl")) == 1


def test_a_second_print_of_the_same_values_is_no_other_fit(tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", fit("stable", 1, 30), fit("stable", 1, 30))
    assert len(fits(tmp_path / "a.jsonl")) == 1


def test_rows_out_of_order_are_no_fits(tmp_path: Path) -> None:
    rows = [{"step": i ^ 1, "grad_norm": 1 + i % 5 / 9, "loss": 2.0} for i in range(60)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(fits(tmp_path / "a.jsonl")) == 1


def test_epochs_without_a_number_go_on_from_one_anothers_values(tmp_path: Path) -> None:
    whole = fit("stable", 3, 120)
    rows = [{"step": s % 30, "loss": x, "grad_norm": x * (1 + g / 99)} for s, x, g in whole.rows()]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(fits(tmp_path / "a.jsonl")) == 1


def test_a_word_of_resuming_keeps_a_run_together(tmp_path: Path) -> None:
    console(tmp_path / "a.log", fit("stable", 1, 30), head="loaded checkpoint last.pt")
    text = (tmp_path / "a.log").read_text()
    console(tmp_path / "a.log", fit("stable", 2, 30))
    (tmp_path / "a.log").write_text((tmp_path / "a.log").read_text() + text)
    assert len(fits(tmp_path / "a.log")) == 1
    (tmp_path / "a.log").write_text(text.replace("loaded", "no checkpoint found, not loaded") * 1 + text)
    assert says_resumed(tmp_path / "a.log", 1, 2) is False


def test_jobs_without_steps_by_the_words_between_them(tmp_path: Path) -> None:
    jobs = (fit("exploding", 1, 40), fit("stable", 2, 30), fit("vanishing", 3, 30))
    for head, tail in (("Namespace(lr=0.1, seed=1)", "saved model to out.pt"), ("$ python train.py --lr 1", "")):
        console(tmp_path / "a.log", *jobs, head=head, tail=tail, form=STEPLESS)
        assert [rows for rows, *_ in fits(tmp_path / "a.log")] == [40, 30, 30]


def test_epochs_that_begin_again_without_steps(tmp_path: Path) -> None:
    hf_console(tmp_path / "a.log", fit("stable", 1, 40), fit("exploding", 2, 30), closing=False)
    assert [rows for rows, *_ in fits(tmp_path / "a.log")] == [40, 30]


def test_what_a_trainer_says_every_epoch_parts_nothing(tmp_path: Path) -> None:
    whole = fit("stable", 4, 90)
    parts = [whole.between(first, first + 30) for first in (0, 30, 60)]
    console(tmp_path / "a.log", *parts, tail="saved model to epoch.pt", form=STEPLESS)
    assert len(fits(tmp_path / "a.log")) == 1


def test_a_counter_with_its_total_begins_again(tmp_path: Path) -> None:
    jobs = [fit(kind, seed, 60) for seed, kind in enumerate(("stable", "exploding", "stable"))]
    console(tmp_path / "a.log", *jobs, head="args: lr=0.1", form="iter {step}/60 loss {loss:.4f} grad_norm {norm:.4f}")
    assert [(rows, first) for rows, first, _ in fits(tmp_path / "a.log")] == [(60, 0)] * 3


def test_nothing_is_said_of_a_pipe_or_a_missing_file(tmp_path: Path) -> None:
    assert borders(Path("-"), [1, 2]) == []
    assert borders(tmp_path / "gone.log", [1, 2]) == []
