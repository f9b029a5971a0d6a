"""docs/rules.md says what the rules say. Where one has changed, `python -m tests.test_rules_page` writes it anew."""

from __future__ import annotations

from gradtrend.detect.rules import load_rules
from gradtrend.model.rule import Rule
from gradtrend.report import Style
from gradtrend.report.text.rule import rule_page
from tests.places import ROOT

PAGE = ROOT / "docs" / "rules.md"
_HEAD = """# The rules

What `gradtrend rule GT101` prints, for all of them. This page is made of the files in `rules/`; README says how to add
a rule or change a limit.

| rule | name | severity | what it finds |
|---|---|---|---|
"""


def page() -> str:
    rules = load_rules()
    rows = [
        f"| [{rule.id}](#{_anchor(rule)}) | {rule.name} | {rule.severity} | {_cell(rule.summary)} |" for rule in rules
    ]
    parts = [f"## {rule.id} {rule.name}\n\n```text\n{rule_page(rule, Style()).rstrip()}\n```\n" for rule in rules]
    return _HEAD + "\n".join(rows) + "\n\n" + "\n".join(parts)


def _anchor(rule: Rule) -> str:
    return f"{rule.id} {rule.name}".lower().replace(" ", "-")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def test_the_page_is_what_the_rules_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
