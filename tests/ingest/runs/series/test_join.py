"""Joining the logs of one run: the best source of each series, the others cross-checked; parts of a resumed run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.ingest.reading import POINTS_SCHEMA, Reading
from gradtrend.ingest.runs.series.join import TABLE_SCHEMA, join
from gradtrend.ingest.runs.series.roles import assign_roles
from gradtrend.model.runlog import Note, rows_that_count

NAN = math.nan
CURVE = [1.0 + 0.37 * math.sin(step) for step in range(40)]
Points = Sequence[tuple[int, float]]


def reading(
    points: Points, name: str = "grad_norm", format_: str = "jsonl", digits: int = 17, started: float | None = None
) -> Reading:
    rows = [(step, value, None, line) for line, (step, value) in enumerate(points, start=1)]
    series = {name: pl.DataFrame(rows, schema=POINTS_SCHEMA, orient="row")}
    return Reading(format_, Path(format_), series, digits=digits, started=started)


def joined(*readings: Reading) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    names = {name for item in readings for name in item.series}
    run = join(readings, assign_roles(names))
    table, notes = run.table, run.notes
    assert table.schema == TABLE_SCHEMA
    return table, notes


def numbered(values: Sequence[float], start: int = 0) -> list[tuple[int, float]]:
    return list(enumerate(values, start=start))


def printed(values: Sequence[float], digits: int) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in values]


def test_nothing_is_an_empty_table() -> None:
    assert joined()[0].height == 0


def test_the_most_points_win_then_the_most_digits() -> None:
    many = reading(numbered(printed(CURVE, 3)), "train_gnorm", "console", 3)
    few = reading(numbered(CURVE)[::5], "gnorm", "tensorboard", 7)
    table, notes = joined(few, many)
    assert table["series"].unique().to_list() == ["train_gnorm"]
    assert table.height == 40
    full = reading(numbered(CURVE), "train/gnorm", "jsonl", 17)
    table, notes = joined(few, many, full)
    assert table["series"].unique().to_list() == ["train/gnorm"]
    assert table["value"].to_list() == CURVE
    assert notes == ()


@pytest.mark.parametrize(
    "values",
    [
        [float(np.float32(value)) for value in CURVE],
        printed(CURVE, 3),
        [value * 1.005 for value in CURVE],
        [*CURVE[:39], 9.0],  # one row of many may differ
    ],
    ids=["float32", "3 digits", "half a percent", "one row"],
)
def test_sources_that_agree(values: list[float]) -> None:
    _, notes = joined(reading(numbered(CURVE)), reading(numbered(values), format_="console", digits=3))
    assert notes == ()


def test_non_finite_values_agree_whatever_they_are() -> None:
    a = [*CURVE[:30], NAN, math.inf, *[NAN] * 8]
    b = [*CURVE[:30], math.inf, math.inf, *[-math.inf] * 8]
    assert joined(reading(numbered(a)), reading(numbered(b), format_="mlflow"))[1] == ()


def test_sources_that_disagree_are_told_and_the_better_one_is_used() -> None:
    other = [value * (1 if step < 20 else 3) for step, value in enumerate(CURVE)]
    table, (note,) = joined(reading(numbered(CURVE)), reading(numbered(other), format_="tensorboard", digits=7))
    assert (note.kind, note.metric, note.first_step) == ("sources-disagree", "grad_norm", 20)
    assert "jsonl and tensorboard disagree on grad_norm at 20 of 40 common steps" in note.message
    assert dict(note.measures)["disagreeing_share"] == 0.5
    assert table["value"].to_list() == CURVE


@pytest.mark.parametrize(("start", "word", "shift"), [(1, "later", 1.0), (0, "earlier", -1.0)])
def test_a_step_base_off_by_one_is_no_disagreement(start: int, word: str, shift: float) -> None:
    best = reading(numbered(CURVE, 1 - start))
    other = reading(numbered(printed(CURVE, 4), start), format_="console", digits=4)
    _, (note,) = joined(best, other)
    assert note.kind == "step-base"
    assert f"one {word} than" in note.message
    assert dict(note.measures)["shift"] == shift


def test_a_flat_series_says_nothing_of_the_step_base() -> None:
    assert joined(reading(numbered([1.0] * 30)), reading(numbered([1.0] * 30, 1), format_="console", digits=3))[1] == ()


def test_no_common_steps_is_no_disagreement() -> None:
    assert joined(reading(numbered(CURVE)), reading(numbered(CURVE, 1000), format_="csv"))[1] == ()


def test_series_without_a_judged_role_are_not_compared() -> None:
    a, b = reading(numbered(CURVE), "accuracy"), reading(numbered([9.0] * 40), "accuracy", "csv")
    assert joined(a, b)[1] == ()


def test_layers_are_kept_apart_and_squares_become_norms() -> None:
    table, _ = joined(
        reading([(0, 2.0)], "grad_norm/fc1"),
        reading([(0, 3.0)], "grad_norm/fc2", "csv"),
        reading([(0, 16.0)], "grad_norm_squared", "console"),
    )
    assert table.select("layer", "value").sort("value").rows() == [("fc1", 2.0), ("fc2", 3.0), (None, 4.0)]


def test_a_resumed_run_is_two_segments() -> None:
    first, second = numbered(CURVE[:30]), numbered([5.0] * 20, 20)
    table, (note,) = joined(reading([*first, *second]))
    assert table["segment"].to_list() == [0] * 30 + [1] * 20
    assert (note.kind, note.first_step, note.last_step) == ("steps-go-back", 20, 29)
    assert note.details == "0-29"
    counts = rows_that_count(table["step"].to_numpy())
    assert table.filter(pl.Series(counts))["value"].to_list() == [*CURVE[:20], *[5.0] * 20]


def test_an_overwritten_run_is_told_as_one() -> None:
    table, (note,) = joined(reading([*numbered(CURVE), *numbered([5.0] * 25)]))
    assert note.kind == "overwritten"
    counts = rows_that_count(table["step"].to_numpy())
    assert table.filter(pl.Series(counts))["value"].to_list() == [5.0] * 25


def test_copies_in_checkpoints_are_prefixes_of_one_run() -> None:
    parts = [reading(numbered(CURVE[:count]), format_="trainer-state") for count in (10, 40, 20, 40)]
    table, notes = joined(*parts)
    assert table.select("step", "value").rows() == numbered(CURVE)
    assert notes == ()


def test_copies_with_nan_at_the_end() -> None:
    values = [*CURVE[:10], NAN, NAN]
    table, notes = joined(
        reading(numbered(values[:11]), format_="trainer-state"), reading(numbered(values), format_="trainer-state")
    )
    assert table.height == 12
    assert notes == ()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_parts_of_a_resumed_run_come_in_the_order_they_were_started(order: tuple[int, ...]) -> None:
    spans = [(0, 15), (10, 30), (25, 40)]
    parts = [
        reading(numbered([i + 1.0] * (stop - start), start), format_="tensorboard", started=100.0 + i)
        for i, (start, stop) in enumerate(spans)
    ]
    table, _ = joined(*(parts[i] for i in order))
    kept = table.filter(pl.Series(rows_that_count(table["step"].to_numpy())))
    assert kept["value"].to_list() == [1.0] * 10 + [2.0] * 15 + [3.0] * 15


FLOATS = st.floats(1e-6, 1e6) | st.sampled_from([NAN, math.inf])


@given(st.lists(FLOATS, min_size=2, max_size=30), st.data())
def test_splitting_a_log_where_it_was_resumed_changes_nothing(values: list[float], data: st.DataObject) -> None:
    """One file with all parts, or a file for each: the same table."""
    cut = data.draw(st.integers(1, len(values) - 1))
    back = data.draw(st.integers(0, cut))
    first, second = numbered(values[:cut]), numbered(values[cut:], cut - back)
    whole, notes = joined(reading([*first, *second], format_="tensorboard"))
    parts = [
        reading(first, format_="tensorboard", started=1.0),
        reading(second, format_="tensorboard", started=2.0),
    ]
    if data.draw(st.booleans()):
        parts.reverse()
    split, split_notes = joined(*parts)
    columns = ["series", "role", "layer", "step", "value", "segment"]
    if all(repr(a) == repr(b) for a, b in zip(first, second, strict=False)):
        return  # then one is the head of the other: a copy
    assert split.select(columns).equals(whole.select(columns), null_equal=True)
    assert split_notes == notes


@given(st.permutations(range(4)))
def test_the_order_of_sources_does_not_matter(order: list[int]) -> None:
    sources = [
        reading(numbered(CURVE), "train/grad_norm", "jsonl"),
        reading(numbered(printed(CURVE, 6), 1), "grad_norm", "console", 6),
        reading(numbered(CURVE[:20]), "grad_norm", "mlflow"),
        reading(numbered([v / 2 for v in CURVE[:30]]), "grad_norm", "tensorboard", 7),
    ]
    table, notes = joined(*(sources[i] for i in order))
    assert table.select("series", "value").rows() == [("train/grad_norm", value) for value in CURVE]
    assert sorted(note.kind for note in notes) == ["sources-disagree", "step-base"]
