"""The tie between gradient norm and loss: order, cause, lead, counts, and what files under `debug/` add."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import polars as pl
import pytest

from gradtrend.model.capture import Capture, OverflowReport
from gradtrend.model.report import NonFinite
from gradtrend.model.runlog import RunLog, Settings
from gradtrend.model.words import Cause, Order, Role, Verdict
from gradtrend.report.wording.nonfinite import nonfinite_text
from tests.detect.runs import Values, judged, log_of, rows

NAN, INF = math.nan, math.inf
N = 40
QUIET = [1.0 + 0.1 * (i % 3) for i in range(N)]
LEARNS = [2.0 - 0.02 * i for i in range(N)]
GROWS = [*QUIET[:30], *(10.0 ** (i / 2) for i in range(1, 11))]


def ending(values: Values, *end: float) -> list[float]:
    return [*values, *end]


def tie_of(log: RunLog) -> NonFinite:
    found = judged(log).nonfinite
    assert found is not None
    return found


@dataclass(frozen=True)
class Tie:
    """A run and what is true of its non-finite values. `steps` are the first in gradient and in loss."""

    norm: Values
    loss: Values
    steps: tuple[int | None, int | None]
    order: Order
    cause: Cause
    counts: tuple[int, int]
    recovered: bool = False


TIES = {
    "after an explosion": Tie(
        ending(GROWS, *[NAN] * 5), ending([2.0] * 35 + [9.0] * 5, *[NAN] * 5), (40, 40), Order.SAME_STEP,
        Cause.AFTER_EXPLOSION, (5, 5),
    ),
    "gradient first": Tie(
        ending(QUIET, *[NAN] * 6), ending(LEARNS, 1.2, 1.2, *[NAN] * 4), (40, 42), Order.GRADIENT_FIRST,
        Cause.GRADIENT_FIRST, (6, 4),
    ),
    "gradient only": Tie(
        ending(QUIET, *[INF] * 6), ending(LEARNS, *[1.2] * 6), (40, None), Order.GRADIENT_ONLY,
        Cause.GRADIENT_FIRST, (6, 0),
    ),
    "loss first": Tie(
        ending(QUIET, 1.0, *[NAN] * 5), ending(LEARNS, *[NAN] * 6), (41, 40), Order.LOSS_FIRST, Cause.LOSS_FIRST,
        (5, 6),
    ),
    "loss only": Tie(
        ending(QUIET, *[1.0] * 6), ending(LEARNS, *[NAN] * 6), (None, 40), Order.LOSS_ONLY, Cause.LOSS_FIRST, (0, 6),
    ),
    "same step": Tie(
        ending(QUIET, *[NAN] * 6), ending(LEARNS, *[NAN] * 6), (40, 40), Order.SAME_STEP, Cause.SAME_STEP, (6, 6),
    ),
    "masked": Tie(
        ending(QUIET, *[NAN] * 6), ending(LEARNS, *[0.0] * 6), (40, None), Order.GRADIENT_ONLY, Cause.MASKED, (6, 0),
    ),
    "recovered in mid-run": Tie(
        [*QUIET[:20], NAN, *QUIET[21:]], LEARNS, (20, None), Order.GRADIENT_ONLY, Cause.RECOVERED, (1, 0), True,
    ),
    "recovered, both": Tie(
        [INF, INF, *QUIET[2:]], [NAN, *LEARNS[1:]], (0, 0), Order.SAME_STEP, Cause.RECOVERED, (2, 1), True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("tie", TIES.values(), ids=TIES.keys())
def test_order_cause_and_counts(tie: Tie) -> None:
    found = tie_of(log_of(tie.norm, tie.loss))
    assert (found.grad_first_step, found.loss_first_step) == tie.steps
    assert (found.order, found.cause) == (tie.order, tie.cause)
    assert (found.grad_count, found.loss_count) == tie.counts
    assert found.recovered == tie.recovered


def test_nothing_nonfinite_is_null() -> None:
    assert judged(log_of(QUIET, LEARNS)).nonfinite is None


def test_the_lead_is_from_the_onset_to_the_first_nonfinite_step() -> None:
    report = judged(log_of(ending(GROWS, *[NAN] * 5), ending([2.0] * N, *[NAN] * 5)))
    assert report.verdict is Verdict.EXPLODING
    (norm, _) = report.series
    assert report.nonfinite is not None
    assert norm.onset_step is not None
    assert 29 <= norm.onset_step <= 32
    assert report.nonfinite.lead_steps == 40 - norm.onset_step


def test_there_is_no_lead_without_an_onset() -> None:
    assert tie_of(log_of(ending(QUIET, NAN, NAN, NAN), ending(LEARNS, NAN, NAN, NAN))).lead_steps is None


def test_a_healthy_rise_long_before_does_not_make_it_an_explosion() -> None:
    rises = [0.3 * 1.06**i for i in range(N)]
    report = judged(log_of(ending(rises, *[NAN] * 5), ending([4 * 0.95**i for i in range(N)], *[NAN] * 5)))
    assert report.verdict is Verdict.NAN_COLLAPSE


def test_a_loss_field_that_disappears_was_nan() -> None:
    found = tie_of(log_of(ending(QUIET, *[NAN] * 6), LEARNS))
    assert (found.loss_first_step, found.order, found.cause) == (40, Order.SAME_STEP, Cause.SAME_STEP)
    assert found.loss_count == 0


def test_a_loss_that_ended_long_before_did_not_disappear() -> None:
    found = tie_of(log_of(ending(QUIET, *[NAN] * 6), LEARNS[:30]))
    assert (found.loss_first_step, found.order) == (None, Order.GRADIENT_ONLY)


CAPTURE = "debug/nan_capture/rank0/nan_capture.pt"


def test_a_capture_after_the_log_is_the_failing_step() -> None:
    report = judged(log_of(QUIET, LEARNS, captures=(Capture(CAPTURE, "lightly-train", 40),)))
    assert report.verdict is Verdict.NAN_COLLAPSE
    assert report.confidence is not None
    found = report.nonfinite
    assert found is not None
    assert (found.grad_first_step, found.loss_first_step, found.order) == (40, None, Order.GRADIENT_ONLY)
    assert (found.cause, found.grad_count, found.recovered) == (None, 0, False)


def test_a_capture_within_the_log_recovered() -> None:
    report = judged(log_of(QUIET, LEARNS, captures=(Capture(CAPTURE, "lightly-train", 20),)))
    assert report.verdict is Verdict.STABLE
    assert report.nonfinite is not None
    assert (report.nonfinite.grad_first_step, report.nonfinite.cause) == (20, Cause.RECOVERED)


def test_a_capture_before_the_logged_nan_is_the_first_step() -> None:
    log = log_of(ending(QUIET, *[NAN] * 4), ending(LEARNS, *[NAN] * 4), captures=(Capture(CAPTURE, "gradtrend", 40),))
    found = tie_of(log)
    assert (found.grad_first_step, found.order, found.cause) == (40, Order.SAME_STEP, Cause.SAME_STEP)


def test_a_capture_that_names_no_step_or_is_finite_says_nothing() -> None:
    captures = (Capture(CAPTURE, "gradtrend", None), Capture(CAPTURE, "gradtrend", 45, finite=True))
    report = judged(log_of(QUIET, LEARNS, captures=captures))
    assert (report.verdict, report.nonfinite) == (Verdict.STABLE, None)
    assert report.captures == captures


def test_a_report_s_batch_is_the_first_step_forward() -> None:
    overflow = OverflowReport("debug/underflow_overflow_rank0.log", 40, True, 0, "layer2.1.relu", "ReLU")
    report = judged(log_of(QUIET, LEARNS, overflow_reports=(overflow,)))
    assert report.verdict is Verdict.NAN_COLLAPSE
    assert report.nonfinite is not None
    assert report.nonfinite.forward_first_step == 40
    assert (report.nonfinite.grad_first_step, report.nonfinite.cause) == (None, None)


def test_a_traced_batch_is_no_overflow() -> None:
    overflow = OverflowReport("debug/underflow_overflow_rank0.log", 40, False, 0)
    assert judged(log_of(QUIET, LEARNS, overflow_reports=(overflow,))).nonfinite is None


def test_nothing_logged_but_a_capture() -> None:
    report = judged(log_of(captures=(Capture(CAPTURE, "lightly-train", 0),)))
    assert report.verdict is Verdict.NAN_COLLAPSE
    assert report.nonfinite is not None
    assert (report.nonfinite.grad_first_step, report.nonfinite.order) == (0, Order.GRADIENT_ONLY)


@pytest.mark.parametrize(("precision", "verdict"), [("16-mixed", Verdict.STABLE), ("32-true", Verdict.NAN_COLLAPSE)])
def test_the_last_updates_may_be_skipped_by_a_loss_scaler(precision: str, verdict: Verdict) -> None:
    settings = Settings(precision=precision)
    report = judged(log_of([*QUIET[:-2], INF, INF], LEARNS, settings=settings))
    assert report.verdict is verdict
    assert judged(log_of([*QUIET[:-3], INF, INF, INF], LEARNS, settings=settings)).verdict is Verdict.NAN_COLLAPSE
    dead_loss = [*LEARNS[:-2], NAN, NAN]
    assert judged(log_of([*QUIET[:-2], INF, INF], dead_loss, settings=settings)).verdict is Verdict.NAN_COLLAPSE


def test_a_logged_loss_scale_says_that_a_scaler_is_at_work() -> None:
    log = log_of([*QUIET[:-1], INF], LEARNS, loss_scale=[65536.0] * N)
    assert judged(log).verdict is Verdict.STABLE


def test_the_earliest_of_several_norms_counts() -> None:
    log = log_of(ending(QUIET, *[NAN] * 6), ending(LEARNS, *[NAN] * 6))
    other = rows("grad_norm/critic", Role.GRAD_NORM, [1.0] * 35 + [NAN] * 11)

    found = tie_of(RunLog("run", pl.concat([log.table, other])))
    assert (found.grad_first_step, found.grad_count, found.order) == (35, 17, Order.GRADIENT_FIRST)


@pytest.mark.parametrize(("tail", "cause"), [([NAN] * 6, None), ([NAN, NAN, 1.2, 1.2, 1.2, 1.2], Cause.RECOVERED)])
def test_without_a_norm_nothing_is_said_of_order_and_direction(tail: list[float], cause: Cause | None) -> None:
    found = tie_of(log_of(loss=ending(LEARNS, *tail)))
    assert (found.grad_first_step, found.loss_first_step) == (None, 40)
    assert (found.order, found.cause) == (None, cause)
    unknown = "No gradient norm is logged: forward and backward pass cannot be told apart."
    text = nonfinite_text(found)
    assert (unknown in text) == (cause is None)
    assert not re.search("gradient norm|forward|scaler|Cause", text.replace(unknown, ""))


SKIPS = [1.0, INF, INF, *[1.0] * 40]


@pytest.mark.parametrize(("end", "collapsed"), [([INF], False), ([INF, INF], False), ([INF] * 3, True)])
def test_one_more_skipped_update_at_the_end_is_no_collapse(end: list[float], collapsed: bool) -> None:
    assert (judged(log_of([*SKIPS, *end])).verdict is Verdict.NAN_COLLAPSE) is collapsed


def test_without_a_skip_before_it_a_last_inf_is_one() -> None:
    assert judged(log_of([*[1.0] * 40, INF])).verdict is Verdict.NAN_COLLAPSE


def test_a_loss_that_is_no_longer_logged_where_the_norm_ends_in_inf_speaks_against_a_skip() -> None:
    assert judged(log_of([*SKIPS, INF], [2.0] * len(SKIPS))).verdict is Verdict.NAN_COLLAPSE


def terms(lost: list[float], norm: list[float] | None = None) -> RunLog:
    """A run that logs its loss in two terms only."""
    frames = [rows("loss_cls", Role.LOSS, LEARNS), rows("loss_box", Role.LOSS, lost)]
    frames += [] if norm is None else [rows("grad_norm", Role.GRAD_NORM, norm)]
    return RunLog("run", pl.concat(frames))


@pytest.mark.parametrize("norm", [None, ending(QUIET[: N - 6], *[NAN] * 6)], ids=["no norm", "norm lost too"])
def test_a_term_that_is_lost_takes_the_loss_with_it(norm: list[float] | None) -> None:
    report = judged(terms(ending(LEARNS[: N - 6], *[NAN] * 6), norm))
    assert report.verdict is Verdict.NAN_COLLAPSE
    assert report.nonfinite is not None
    assert report.nonfinite.loss_first_step == N - 6


@pytest.mark.parametrize(
    "lost", [[*LEARNS[:-2], NAN, NAN], [NAN] * N, [NAN, NAN, *LEARNS[2:]]], ids=["two", "never there", "came back"]
)
def test_terms_that_are_not_lost(lost: list[float]) -> None:
    assert judged(terms(lost)).verdict is not Verdict.NAN_COLLAPSE


def test_a_term_beside_a_norm_that_stays_finite_is_not_trained_on() -> None:
    assert judged(terms([*LEARNS[:-6], *[NAN] * 6], [*QUIET])).verdict is Verdict.STABLE
