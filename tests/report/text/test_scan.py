"""Many runs for people: the worst first, counts below, nothing that a terminal would obey."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradtrend.model.many.contrast import Contrasts, Outcome
from gradtrend.model.many.record import Record, by_badness, counted
from gradtrend.model.words import Severity, Verdict
from gradtrend.report import Style
from gradtrend.report.text.scan import scan_summary, scan_text, what_tells
from tests.pipeline.scan.scans import records

STABLE = Record("out/a", verdict=Verdict.STABLE, confidence=0.9, last=1.0)
WARNED = Record("out/b", verdict=Verdict.STABLE, confidence=0.9, severity=Severity.WARNING, brief="drifts up")
UNJUDGED = Record("out/c", verdict=Verdict.UNDETERMINED, severity=Severity.WARNING)
SICK = Record("out/d", verdict=Verdict.EXPLODING, confidence=0.97, severity=Severity.ERROR, onset_step=70, last=1e9)
SICKER = Record("out/e", verdict=Verdict.EXPLODING, confidence=0.99, severity=Severity.ERROR)
LOST = Record("out/f", failure="out/f: damaged", hint="Remove it.")


def lines(*given: Record, rows: int | None = None, tells: tuple[str, ...] = ()) -> list[str]:
    return scan_text(given, rows, tells, Style()).splitlines()


def test_the_worst_come_first_and_the_well_are_counted() -> None:
    shown = lines(STABLE, WARNED, UNJUDGED, SICK, SICKER, LOST)
    assert shown[0] == "Runs below out/"
    assert [line.split()[-1] for line in shown[2:7]] == ["e", "d", "c", "f", "b"]
    assert shown[7:] == ["", "6 runs: 2 exploding, 2 stable, 1 undetermined, 1 unreadable"]
    assert shown[3].split() == ["exploding", "0.97", "70", "1e9", "-", "d"]
    assert shown[5].split() == ["unreadable", "-", "-", "-", "damaged", "f"]


def test_the_reason_is_shown_and_not_the_address_before_it() -> None:
    other = Record("s3://b/x", failure="s3://b/xy: no")
    for failure in ("s3://b/run: busy", "s3://b/run/metrics.jsonl: busy", "busy"):
        rows = [line.split() for line in lines(Record("s3://b/run", failure=failure), other)]
        assert ["unreadable", "-", "-", "-", "busy", "run"] in rows
        assert ["unreadable", "-", "-", "-", "s3://b/xy:", "no", "x"] in rows


def test_of_many_some_are_shown_and_the_rest_counted() -> None:
    many = [Record(f"out/{number}", verdict=Verdict.DIVERGING) for number in range(1500)]
    shown = lines(*many, rows=3)
    assert len(shown) == 2 + 3 + 1 + 2
    assert shown[5] == "1,497 more that are not well: --rows 1500 lists them, -o runs.jsonl keeps all"
    assert shown[-1] == "1,500 runs: 1,500 diverging"
    assert lines(*many, rows=0)[-1] == shown[-1]
    assert not [line for line in lines(*many) if "more that" in line]


def test_where_all_is_well_there_is_no_table() -> None:
    assert lines(STABLE) == ["1 run: 1 stable"]
    assert lines() == ["0 runs"]


def test_what_tells_stands_between_the_table_and_the_counts() -> None:
    title = "What tells the sick runs from the healthy ones"
    assert lines(SICK, STABLE, tells=("lr tells",))[-5:] == [
        "",
        title,
        "  lr tells",
        "",
        "2 runs: 1 exploding, 1 stable",
    ]


def test_of_one_side_alone_nothing_is_told() -> None:
    assert what_tells(Contrasts(Outcome.ONE_SIDED, 4, 0)) == ()
    assert what_tells(Contrasts(Outcome.ONE_SIDED, 0, 0)) == ()
    assert len(what_tells(Contrasts(Outcome.NOTHING_LOGGED, 4, 1))) == 1


def test_counts_have_the_order_of_verdicts() -> None:
    assert [*counted([LOST, STABLE, SICK])] == [Verdict.EXPLODING, Verdict.STABLE, None]
    assert by_badness([STABLE, LOST, SICK]) == [SICK, LOST, STABLE]


def test_colour_only_where_it_is_asked_for() -> None:
    assert "\x1b[" not in scan_text([SICK, LOST], None, (), Style())
    assert "\x1b[" in scan_text([SICK, LOST], None, (), Style(colour=True))


def commands_in(text: str) -> set[str]:
    """What a terminal would not show but do: controls, directions, separators of lines."""
    return {one for one in text.replace("\n", "") if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


@pytest.mark.parametrize("text", ["a\nb", "\x1b[31mred", "\x9b2J", "\udcff", "x\rgone", "\u202eevil", "::error::x"])
def test_a_terminal_obeys_no_name(text: str) -> None:
    record = Record(f"out/{text}", name=text, verdict=Verdict.EXPLODING, brief=text)
    shown = scan_text([record, Record(text, failure=f"{text}: {text}")], None, (), Style())
    assert len(shown.splitlines()) == 1 + 2 + 2 or len(shown.splitlines()) == 2 + 2 + 1
    assert commands_in(shown) == set()
    shown.encode()


@settings(max_examples=60)
@given(found=st.lists(records(), max_size=4))
def test_any_records_can_be_shown(found: list[Record]) -> None:
    shown = scan_text(found, 3, (), Style())
    assert shown.endswith(f"{scan_summary(found)}\n")
    assert commands_in(shown) == set()
