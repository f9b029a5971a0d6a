from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from gradtrend.report.html.names import common_start, without_common
from gradtrend.report.html.points import packed_steps, packed_values


def test_values_keep_four_digits_and_what_is_not_finite() -> None:
    assert packed_values([1.23456, 1e20, 0.0, math.nan, math.inf, -math.inf]) == [1.235, 1e20, 0, "N", "I", "-I"]


@given(st.lists(st.integers(-(2**60), 2**60), unique=True).map(sorted))
def test_steps_come_back(steps: list[int]) -> None:
    packed = packed_steps(steps)
    if isinstance(packed, dict):
        begin, by, n = packed["from"], packed["by"], packed["n"]
        assert isinstance(begin, int)
        assert isinstance(by, int)
        assert isinstance(n, int)
        assert [begin + i * by for i in range(n)] == steps
    else:
        assert [sum(packed[: i + 1]) for i in range(len(packed))] == steps


def test_names_lose_what_all_share_in_whole_words() -> None:
    assert without_common(["model.h.1.attn.weight", "model.h.12.attn.weight"]) == ["1", "12"]
    assert without_common(["0_weight", "1_weight"]) == ["0_weight", "1_weight"]
    assert without_common(["same", "same"]) == ["same", "same"]
    assert without_common(["a.b", "a.b.c"]) == ["b", "b.c"]


def test_the_folder_of_all_runs() -> None:
    assert common_start(["out/a/run", "out/ab"], "/") == "out/"
    assert common_start(["run.1", "run.2"], "/") == ""
    assert common_start([], "/") == ""
