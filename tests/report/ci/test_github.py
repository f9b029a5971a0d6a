from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from gradtrend.model.report import Anchor, Policy, Report, RunReport
from gradtrend.report.ci.github import MOST, render_github
from gradtrend.report.wording.style import Style
from tests.report.ci.made import HOSTILE, hostile, many

Command = tuple[str, dict[str, str], str]


def _plain(text: str) -> str:
    for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, char)
    return text


def commands(report: Report) -> list[Command]:
    """The commands as GitHub's runner takes them: a line that begins with `::`, its words, and behind `::` a text."""
    *lines, last = render_github(report, Style()).splitlines()
    assert last.startswith("gradtrend: ")
    found = []
    for line in lines:
        match = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line)
        assert match is not None, line
        words = dict(word.split("=", 1) for word in match[2].split(","))
        found.append((match[1], {key: _plain(value) for key, value in words.items()}, _plain(match[3])))
    return found


def test_what_fails_is_an_error_and_nothing_else(report: Report) -> None:
    found = [(kind, words["title"]) for kind, words, _ in commands(report)]
    assert found == [
        ("error", "GT101 exploding: out/run"),
        ("error", "GT401 vanishing-layer: runs/layers"),
        ("error", "runs/short: could not be judged"),
        ("error", "out/other: could not be read"),
        ("error", "out/bug: could not be read"),
        ("notice", "GT502 stale: out/run"),
    ]


def test_levels_follow_the_policy(report: Report) -> None:
    allowed = replace(report, policy=Policy(None, allow_undetermined=True), failures=report.failures[:1])
    assert {kind for kind, _, _ in commands(allowed)} == {"warning", "notice"}


def test_a_known_finding_is_a_notice(exploding: RunReport) -> None:
    known = replace(exploding, findings=tuple(replace(finding, known=True) for finding in exploding.findings))
    assert {kind for kind, _, _ in commands(Report(0, (known,)))} == {"notice"}


def test_at_most_ten_a_level_and_how_many_more() -> None:
    for count in (MOST, MOST + 1, 500):
        found = commands(many(count))
        assert Counter(kind for kind, _, _ in found) == dict.fromkeys(("error", "warning", "notice"), MOST)
        last = [text for kind, _, text in found if kind == "error"][-1]
        assert last.startswith(f"and {count - MOST + 1} more errors") == (count > MOST)


def test_the_anchor_is_the_place(exploding: RunReport) -> None:
    (first, *_) = commands(Report(1, (exploding,), anchor=Anchor("conf,a:b.yaml", 3)))
    assert first[1]["file"] == "conf,a:b.yaml"
    assert first[1]["line"] == "3"


def test_a_log_elsewhere_is_no_place(exploding: RunReport) -> None:
    (first, *_) = commands(Report(1, (exploding,), folder="/project"))
    assert "file" not in first[1]


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names(name: str) -> None:
    found = commands(hostile(name))
    assert Counter(kind for kind, _, _ in found) == {"error": 3, "warning": 1}
    for _, words, text in found:
        assert set(words) <= {"file", "line", "title"}
        assert len(words["title"]) <= 255
        assert (words["title"] + text).isprintable() or name == HOSTILE["no characters"]


def test_nothing_is_one_line() -> None:
    assert render_github(Report(0), Style()) == "gradtrend: 0 runs\n"
