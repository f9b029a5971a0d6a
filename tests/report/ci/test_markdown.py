from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from gradtrend.model.report import Policy, Report, RunReport
from gradtrend.report.ci.markdown import LARGEST, render_markdown
from gradtrend.report.wording.escape import escape, shorten
from gradtrend.report.wording.style import Style
from tests.report.ci.made import HOSTILE, hostile, many

# All that the format itself makes of its own words.
OURS = {
    "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "ul", "ol", "li", "strong", "details", "summary",
}  # fmt: skip


class Page(HTMLParser):
    """What a reader of Markdown makes of a text: tags, texts, rows of tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.rows: list[list[str]] = []
        self.feed(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not attrs or tag in ("th", "td")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip("\n")


def page(report: Report) -> Page:
    text = render_markdown(report, Style())
    assert len(text) <= LARGEST
    return Page(text)


def test_the_table_is_worst_first(report: Report) -> None:
    rows = page(report).rows
    assert [row[1:3] for row in rows] == [
        ["run", "verdict"],
        ["out/run", "exploding"],
        ["runs/layers", "vanishing"],
        ["runs/short", "undetermined"],
        ["runs/ok", "stable"],
    ]
    assert rows[1][3:] == ["0.99", "The gradient norm climbs from 0.9 to 3.2e5. (steps 371 to 397)"]


def test_details_are_folded_and_say_what_to_do(report: Report) -> None:
    found = page(report)
    assert found.tags.count("details") == 3  # of all but the stable run
    assert "GT401 vanishing-layer (error): Layer 0_weight vanishes. (steps 40 to 99) (8 more" in found.text
    assert "Lower the learning rate." in found.text


@pytest.mark.parametrize(("policy", "title"), [(Policy(), "failed"), (Policy(None, allow_undetermined=True), "passed")])
def test_the_title_agrees_with_the_exit_code(report: Report, policy: Policy, title: str) -> None:
    found = replace(report, policy=policy, failures=report.failures[:1])
    assert page(found).text.startswith(f"gradtrend: {title}")


def test_a_known_finding_is_said_to_be_known(exploding: RunReport) -> None:
    known = replace(exploding, findings=tuple(replace(finding, known=True) for finding in exploding.findings))
    found = page(Report(0, (known,)))
    assert "[known]" in found.text
    assert found.rows[1][0].startswith("⚠")
    assert found.text.startswith("gradtrend: passed")


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names(name: str) -> None:
    """Names are nothing but text: no element, no link, no row or cell more, nobody called."""
    found = page(hostile(name))
    assert set(found.tags) <= OURS
    assert [len(row) for row in found.rows] == [5, 5, 5, 5]
    assert shorten(escape(f"ok{name}"), 120) in found.text.replace("\u200b", "")
    assert "@a" not in found.text


def test_many_runs_fit_a_comment() -> None:
    found = page(many(5000))
    assert len(found.rows) == 52
    assert found.rows[-1][1] == "and 4950 more runs"
    assert "more runs are left out" in found.text


def test_nothing_at_all() -> None:
    assert page(Report(0)).text.startswith("gradtrend: passed")
