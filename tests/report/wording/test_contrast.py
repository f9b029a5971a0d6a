"""What tells sick runs from healthy ones, in words."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gradtrend.model.many.contrast import Contrast, ContrastKind, Contrasts, Outcome, Part, Spread
from gradtrend.report.wording.contrast import NO_CAUSE, contrast_line, contrast_lines

RATE = Contrast(
    ("lr",), ContrastKind.NUMBER, 1e-10, 2.4e-9, Part(11, 12), Part(1, 40), None, 0.05, "above",
    Spread(0.1, 0.3, 1.0), Spread(1e-4, 1e-3, 0.03),
)  # fmt: skip
WORD = Contrast(("precision",), ContrastKind.VALUE, 1e-6, 1e-5, Part(9, 10), Part(2, 42), "fp16")
FOUND = Contrasts(Outcome.FOUND, 52, 12, (RATE, WORD), tested=14, logged=20)


def test_a_number() -> None:
    assert contrast_line(RATE, 14) == (
        "lr: sick runs 0.1 to 1 (median 0.3), healthy runs 1e-4 to 0.03 (median 0.001); "
        "above 0.05: 11 of 12 are sick, up to it: 1 of 40 (p 2e-9, of 14 tested)"
    )
    below = replace(RATE, sick_are="below", sick=Spread(5, 5, 5), threshold=5.0)
    assert "sick runs 5, healthy" in contrast_line(below, 14)
    assert "; up to 5: 11 of 12 are sick, above it: 1 of 40 (" in contrast_line(below, 14)
    assert contrast_line(replace(RATE, threshold=None, inside=None), 1).endswith("(median 0.001) (p 2e-9, of 1 tested)")


def test_a_value_and_a_presence() -> None:
    assert contrast_line(WORD, 14) == (
        "precision = fp16: 9 of 10 are sick, of the others 2 of 42 (p 1e-5, of 14 tested)"
    )
    assert contrast_line(replace(WORD, kind=ContrastKind.PRESENCE, value=None), 14) == (
        "precision: where it is set, 9 of 10 are sick, elsewhere 2 of 42 (p 1e-5, of 14 tested)"
    )
    words = {None: "null", True: "true", 64: "64", 3e-4: "3e-4", "": '""', math.inf: "inf"}
    for value, word in words.items():
        assert contrast_line(replace(WORD, value=value), 14).startswith(f"precision = {word}: ")
    assert len(contrast_line(replace(WORD, value=10**9999), 14)) < 200


def test_names_that_cannot_be_told_apart() -> None:
    assert contrast_line(replace(WORD, names=("a", "b/c")), 2).endswith("; b/c parts the runs in the same way")
    assert contrast_line(replace(WORD, names=tuple("abcdef")), 2).endswith(
        "; b, c, d and 2 more part the runs in the same way"
    )


def test_hostile_names_and_values_cannot_move_the_cursor() -> None:
    line = contrast_line(replace(WORD, names=("\x1b[31mlr\n", "\u202e"), value="x\r" * 999), 2)
    assert line.isprintable()
    assert len(line) < 220


def test_that_it_is_no_cause_is_said_once() -> None:
    assert contrast_lines(FOUND)[2:] == [NO_CAUSE]
    lines = contrast_lines(replace(FOUND, ranked=(WORD,) * 9), most=5)
    assert lines[5:] == ["4 more of 14 tested", NO_CAUSE]


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (Outcome.NOTHING_FOUND, "nothing that was logged tells them apart (14 hyperparameters, 52 runs)"),
        (Outcome.TOO_FEW_RUNS, "too few runs to say what tells them apart (12 sick, 40 healthy, 20 hyperparameters "
         "that vary)"),
        (Outcome.NOTHING_VARIES, "20 hyperparameters logged, the same in all 52 runs"),
        (Outcome.ONE_SIDED, "all runs are sick: there is nothing to compare"),
        (Outcome.NOTHING_LOGGED, "no hyperparameters were found with these runs (hparams.yaml, config.yaml, parameters "
         "of a store)"),
    ],
)  # fmt: skip
def test_why_there_is_none(outcome: Outcome, line: str) -> None:
    assert contrast_lines(replace(FOUND, ranked=(), outcome=outcome)) == [line]


def test_counts_have_commas_from_a_thousand() -> None:
    many = Contrasts(Outcome.NOTHING_VARIES, 1500, 1200, logged=1)
    assert contrast_lines(many) == ["1 hyperparameter logged, the same in all 1,500 runs"]
    assert "(1,200 sick, 300 healthy, " in contrast_lines(replace(many, outcome=Outcome.TOO_FEW_RUNS))[0]
    assert "1,500 runs)" in contrast_lines(replace(many, outcome=Outcome.NOTHING_FOUND))[0]
    line = contrast_line(replace(WORD, inside=Part(1100, 1200), outside=Part(0, 9999)), 1001)
    assert "1,100 of 1,200 are sick, of the others 0 of 9,999 (p 1e-5, of 1,001 tested)" in line
