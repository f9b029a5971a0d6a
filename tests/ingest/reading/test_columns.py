"""What a logged null stands for: NaN, or nothing measured on that row."""

from __future__ import annotations

import math

import pytest

from gradtrend.ingest.reading.columns import Column, series_of

N = None


def read(values: list[float | None]) -> list[float | str]:
    """The values left of a metric, NaN as a word."""
    column = Column()
    for step, value in enumerate(values):
        column.add(step, value, None, None)
    series = series_of({"loss": column})
    return ["nan" if math.isnan(v) else v for v in series["loss"]["value"].to_list()] if series else []


@pytest.mark.parametrize(
    ("values", "left"),
    [
        ([1, 2, 3, N, 4], [1, 2, 3, "nan", 4]),
        ([1, 2, 3, N, N], [1, 2, 3, "nan", "nan"]),
        ([1, 2, N, 3, 4, 5, N, N, N], [1, 2, "nan", 3, 4, 5, "nan", "nan", "nan"]),
        ([1, N, 2, N, 3, N, N, N, N, N], [1, 2, 3, "nan", "nan", "nan", "nan", "nan"]),
        ([1, 2, 3, N], [1, 2, 3]),
        ([1, 2, N, 3, 4, 5, N], [1, 2, "nan", 3, 4, 5, "nan"]),
        ([1, N, 2, N, 3, N], [1, 2, 3]),
        ([1, N, N, 2, N, N, 3, N, N, N], [1, 2, 3]),
        ([N, N, N], []),
    ],
    ids=[
        "one among numbers",
        "two at the end",
        "one among numbers does not hide the end",
        "every other row, then never again",
        "a summary row",
        "NaN before, and at the end",
        "every other row",
        "every third row, a little more at the end",
        "nothing but nulls",
    ],
)
def test_what_a_null_stands_for(values: list[float | None], left: list[float | str]) -> None:
    assert read(values) == left
