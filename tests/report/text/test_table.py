from __future__ import annotations

from dataclasses import replace

import pytest

from gradtrend.model.report import RunReport
from gradtrend.report.text.table import common_folder, head_lines, row
from gradtrend.report.wording.style import Style
from gradtrend.report.wording.width import width_of


def test_a_row_says_what_how_sure_since_when_and_why(exploding: RunReport) -> None:
    last = tuple(replace(one, last=float("nan")) for one in exploding.series)
    cells = row(replace(exploding, series=last), "out/", Style()).split()
    assert cells[:4] == ["exploding", "0.99", "371", "NaN"]
    assert cells[-1] == "run"
    assert " ".join(cells[4:-1]) == "norm x4e5, then NaN"


@pytest.mark.parametrize("columns", [77, 80, 120])
@pytest.mark.parametrize("name", ["a" * 300, "学習" * 60, "e\u0301" * 200, "x\x1b[31m\n\r\u202e" * 20])
def test_no_name_breaks_the_columns(exploding: RunReport, name: str, columns: int) -> None:
    style = Style(columns=columns)
    line = row(replace(exploding, run=name, name=name[::-1]), "", style)
    assert width_of(line) <= columns
    assert "\n" not in line
    assert "\x1b" not in line
    assert line.startswith("exploding     0.99      371")
    assert all(width_of(head) <= columns for head in head_lines("", style))


@pytest.mark.parametrize(
    ("columns", "heads"),
    [(76, "verdict onset ends at why run"), (70, "verdict onset why run"), (60, "verdict why run")],
)
def test_a_narrow_screen_goes_without_some_columns(exploding: RunReport, columns: int, heads: str) -> None:
    style = Style(columns=columns)
    (head,) = head_lines("", style)
    assert head.split() == heads.split()
    assert width_of(row(replace(exploding, run="n" * 300), "", style)) <= columns


def test_where_nothing_is_cut_the_name_is_whole(exploding: RunReport) -> None:
    assert row(replace(exploding, run="n" * 300), "", Style()).endswith("  " + "n" * 300)


def test_colour_takes_no_column(exploding: RunReport) -> None:
    coloured = row(exploding, "", Style(colour=True)).replace("\x1b[31m", "").replace("\x1b[0m", "")
    assert coloured == row(exploding, "", Style())


def test_the_folder_of_all_is_said_once() -> None:
    assert common_folder(["out/a/x", "out/ab/y"]) == "out/"
    assert common_folder(["http://host/1", "http://host/2"]) == "http://host/"
    assert common_folder(["a", "b"]) == ""
    assert common_folder(["out/a"]) == ""
    assert head_lines("a\x1bb/", Style())[0] == "Runs below a\\x1bb/"
