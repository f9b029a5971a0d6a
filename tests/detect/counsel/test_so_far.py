"""What a few values look like: healthy, suspicious, or nothing that could be said."""

from __future__ import annotations

import math

import pytest

from gradtrend.model.advice import SoFar
from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Verdict
from tests.detect.runs import judged, log_of

NAN = math.nan
FALLS = [4.0 - 0.1 * i for i in range(20)]


@pytest.mark.parametrize(
    ("log", "so_far"),
    [
        (log_of([1.0, 1.2, 0.9, 1.1], [3.0, 2.8, 2.7, 2.5]), SoFar.HEALTHY),
        (log_of([1.0, 1.2, 0.9, 1.1]), SoFar.HEALTHY),
        (log_of(loss=FALLS), SoFar.HEALTHY),
        (log_of(loss=[-v for v in FALLS[::-1]]), SoFar.HEALTHY),  # a likelihood, below zero and falling
        (log_of([9.0, 3.0, 2.0, 1.5], [9.0, 5.0, 4.0, 3.0]), SoFar.HEALTHY),
        (log_of(loss=[3.0, 2.8, 2.7, 9.0]), SoFar.SUSPICIOUS),
        (log_of([NAN, NAN], [1.1, 0.0]), SoFar.SUSPICIOUS),
        (log_of([0.0] * 6, [8.9, 8.8, 9.0, 8.9, 8.8, 8.9]), SoFar.SUSPICIOUS),
        (log_of(loss=[2.3] * 30), SoFar.SUSPICIOUS),  # it does not learn
        (log_of(loss=[2.3] * 7), None),
        (log_of([1.0], [2.0]), None),
        (log_of(), None),
    ],
)
def test_what_a_few_values_look_like(log: RunLog, so_far: SoFar | None) -> None:
    report = judged(log)
    assert report.verdict is Verdict.UNDETERMINED
    assert report.so_far is so_far
    assert ("nothing-to-do" in {one.action for one in report.next}) == (so_far is SoFar.HEALTHY)


def test_the_sentence_has_the_numbers_of_the_log() -> None:
    report = judged(log_of([1.0, 1.2, 0.9, 1.1], [3.0, 2.8, 2.7, 2.5]))
    assert (
        report.next[0].text == "Nothing to do so far: grad_norm keeps between 0.9 and 1.2 and loss fell from 3 to 2.5."
    )


def test_a_stable_run_says_in_one_line_why_one_may_believe_it() -> None:
    report = judged(log_of([1.0 + 0.1 * (i % 3) for i in range(40)], [4.0 - 0.05 * i for i in range(40)]))
    assert report.verdict is Verdict.STABLE
    assert [one.text for one in report.next] == [
        "Nothing to do: grad_norm keeps between 1 and 1.2 and loss fell from 3.7 to 2.35."
    ]
    assert report.so_far is None


def test_what_comes_down_from_a_blow_up_to_where_it_began_did_not_fall() -> None:
    loss = [2.0, *[5.0] * 12, *[2.1] * 27]
    report = judged(log_of([1.0 + 0.1 * (i % 3) for i in range(40)], loss))
    assert not any("fell" in one.text for one in report.next)
    assert any(
        "fell from 5 to 1.9" in one.text for one in judged(log_of([1.0, 1.2] * 20, [*loss[:13], *[1.9] * 27])).next
    )


def test_a_loss_that_came_back_to_its_start_is_not_nothing_to_do() -> None:
    loss = [0.69, 0.7, *[0.69, 0.71] * 9, *[9.0] * 20, *[1.0] * 60]
    report = judged(log_of([1.0, 1.1] * 50, loss))
    assert report.verdict is Verdict.STABLE
    assert next(one.action for one in report.next) == "lower-lr"
    assert "nothing-to-do" not in {one.action for one in report.next}
