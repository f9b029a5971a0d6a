"""Whether a loss scaler is named as what makes norms non-finite."""

from __future__ import annotations

import math

import pytest

from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Verdict
from gradtrend.report.wording.nonfinite import may_be_scaled
from tests.detect.runs import judged, log_of

CALM = [1.0 + 0.1 * (i % 7) for i in range(160)]
NORM = [*CALM[:10], *[math.inf] * 80, *CALM]
BLEW_UP = [18.0, 2580.0, 9060.0, *(10.0 ** (24 - 19 * i / 246) for i in range(247))]


@pytest.mark.parametrize(
    ("log", "verdict", "scaled"),
    [
        (log_of(NORM, BLEW_UP), Verdict.DIVERGING, False),
        (log_of(NORM, BLEW_UP, loss_scale=[2.0**10] * 250), Verdict.DIVERGING, True),
        (log_of(NORM, [4.0 - i / 100 for i in range(250)]), Verdict.STABLE, True),
    ],
    ids=["diverges", "diverges-with-a-scale", "trains"],
)
def test_a_scaler_is_named_where_nothing_else_explains_the_norm(log: RunLog, verdict: Verdict, scaled: bool) -> None:
    report = judged(log)
    assert report.verdict is verdict
    assert may_be_scaled(report) is scaled
