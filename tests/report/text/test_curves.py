from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gradtrend.detect.judge import judge
from gradtrend.detect.rules import load_rules
from gradtrend.model.report import RunReport, SeriesReport
from gradtrend.model.words import Role, Trend, Verdict
from gradtrend.report.text.curves import curve_lines
from gradtrend.report.wording.style import Style
from tests.detect.runs import log_of

_NORM = SeriesReport(
    "norm", Role.GRAD_NORM, None, 10, 0, 9, Trend.EXPLODING, 5, 1.0, 1e5, 5.0, (1.0,) * 5 + (10.0, 1e2, 1e3, 1e4, 1e5),
    lowest=1.0,
)  # fmt: skip
_LR = SeriesReport("lr", Role.LR, None, 10, 0, 9, peak=1.0, sketch=tuple(10.0**-i for i in range(10)), lowest=1e-9)


def _lines(*series: SeriesReport, style: Style | None = None) -> list[str]:
    return curve_lines(RunReport("r", Verdict.EXPLODING, 0.9, series=series), style or Style())


def test_norm_and_rate_stand_over_one_axis_with_the_onset_and_the_ends_of_each() -> None:
    assert _lines(_NORM, _LR)[:4] == [
        "  norm   ▁▁▁▁▁▂▄▅▇█  1 to 1e5",
        "  lr     ██▇▆▅▄▃▂▁▁  1.00e-9 to 1".replace("1.00e-9", "1e-9"),
        "              ▲      ▲ onset, step 5",
        "  steps  0 ────── 9  (log scales)",
    ]


def test_a_single_nan_that_the_curve_does_not_show_is_marked() -> None:
    lines = _lines(replace(_NORM, onset_step=None, gaps=(2, 9)))
    assert lines[1] == "           ✕      ✕  ✕ NaN/inf"


def test_the_ends_of_a_curve_are_its_own_values() -> None:
    """A noise of 2 % is drawn flat, over a decade of which the log holds nothing: its ends would be misread."""
    quiet = replace(_NORM, onset_step=None, sketch=(2.28, 2.33) * 5, lowest=2.28, peak=2.33)
    assert _lines(quiet, _LR)[0].endswith("  2.3")
    assert _lines(replace(quiet, sketch=(2.2, 2.5) * 5, lowest=2.2, peak=2.5), _LR)[0].endswith("  2.2 to 2.5")


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([16.7, 84.9] * 300, "17 to 85"),
        ([16.7, 84.9] * 300 + [math.nan] * 400, "17 to 85"),  # whose shares are of one value each
        ([-0.25, -8.0] * 50, "-8 to -0.25"),
        ([0.0] * 100, "0"),
        ([math.nan] * 100, ""),
    ],
)
def test_the_ends_are_the_least_and_the_largest_value_that_is_logged(values: list[float], ends: str) -> None:
    """A curve shows the largest value of each share of the steps."""
    report = judge(log_of([1.0 + 0.1 * (i % 7) for i in range(len(values))], values), load_rules())
    (line,) = (line for line in curve_lines(report, Style()) if line.startswith("  loss "))
    assert line.rstrip().endswith(f"  {ends}".rstrip())
    if not ends:
        assert line.rstrip().endswith("✕")


def test_a_series_that_ends_early_leaves_blanks() -> None:
    short = replace(_NORM, points=5, last_step=4, onset_step=None, sketch=(1.0,) * 5, peak=1.0)
    assert _lines(short, _LR)[0] == "  norm   ▅▅▅▅▅       1"  # one number: all are as good as one


def test_without_a_size_there_is_no_scale() -> None:
    nothing = replace(_NORM, sketch=(math.nan, math.inf), onset_step=None, last_step=1, peak=None, lowest=None)
    assert _lines(nothing)[0].rstrip() == "  norm   ✕✕"


def test_long_wide_names_do_not_push_the_curves() -> None:
    wide = replace(_NORM, metric="勾配" * 40)
    for line in _lines(wide, _LR, style=Style(width=60)):
        assert len(line) <= 60


def test_a_rate_alone_is_no_picture() -> None:
    assert _lines(_LR) == []
