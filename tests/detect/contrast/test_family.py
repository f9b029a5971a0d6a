"""Holm's correction, and which tests need none."""

from __future__ import annotations

import pytest

from gradtrend.detect.contrast.family import corrected, worth_testing


def test_holm_by_hand() -> None:
    assert corrected([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert corrected([0.9, 0.8]) == [1.0, 1.0]
    assert corrected([]) == []


def test_what_can_never_be_below_the_level_is_not_corrected_for() -> None:
    assert worth_testing([0.3, 1e-6, 0.04, 1e-5], 0.05) == [1, 3]  # with two tests, 0.04 is out of reach
    assert worth_testing([0.04], 0.05) == [0]
    assert worth_testing([0.04] * 3, 0.05) == []
    assert worth_testing([], 0.05) == []
