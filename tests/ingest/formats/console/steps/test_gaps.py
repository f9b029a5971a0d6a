"""Missing steps of a console log are counted."""

from __future__ import annotations

import io

from gradtrend.ingest.formats.console import reader as console
from gradtrend.ingest.reading.names import SKIPPED_NORM


def notes(steps: list[int]) -> list[tuple[str, float]]:
    text = "".join(f"step {s} loss 2.0 grad_norm 1.0\n" for s in steps)
    (reading,) = console.read_stream(io.BufferedReader(io.BytesIO(text.encode())))
    return [(note.message, dict(note.measures)["missing_steps"]) for note in reading.notes]


def test_gaps_in_a_rhythm_are_counted() -> None:
    steps = [s for s in range(0, 300, 10) if s not in (50, 60, 200)]
    assert notes(steps) == [
        ("3 steps are missing from grad_norm, which is logged every 10; the first after step 40", 3.0)
    ]


def test_no_rhythm_no_gaps() -> None:
    assert notes([0, 1, 4, 9, 16, 25, 36, 49, 64, 81]) == []
    assert notes(list(range(50))) == []
    assert notes([0, 1, 2, 50]) == []


def test_going_back_is_no_gap() -> None:
    assert notes([*range(20), *range(10, 30)]) == []


def test_skipped_updates_alone_have_no_rhythm() -> None:
    bar, warning = "{}/900 [00:10<01:00]", "The grad norm is nan. Skipping updating the model."
    text = "".join(f"{s}%| | {bar.format(s)} {warning}\n" for s in [*range(10), *range(20, 30)])
    (reading,) = console.read_stream(io.BufferedReader(io.BytesIO((text + "step 1 loss 2.0\n").encode())))
    assert SKIPPED_NORM in reading.series
    assert [note.kind for note in reading.notes] == ["skipped-updates"]
