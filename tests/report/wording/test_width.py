from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gradtrend.report.wording.width import fitted, padded, width_of


def test_wide_characters_take_two_columns_and_marks_none() -> None:
    assert width_of("abc") == 3
    assert width_of("学習") == 4
    assert width_of("e\u0301") == 1


def test_both_ends_of_a_name_are_kept() -> None:
    assert fitted("sweep/lr_0.001/seed_17", 11, "…") == "sweep…ed_17"
    assert fitted("short", 11, "…") == "short"


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"])), st.integers(1, 40))
def test_nothing_is_wider_than_its_room(text: str, room: int) -> None:
    assert width_of(fitted(text, room, "…")) <= room
    assert width_of(padded(fitted(text, room, "…"), room)) == room
