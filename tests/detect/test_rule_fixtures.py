"""Every rule on small runs: those on which it fires, and near misses on which it stays quiet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.detect.runs import FIXTURES, fired, judged, read, shipped_rules

FOLDERS = sorted(path for path in (FIXTURES / "rules").glob("*/*/*") if path.is_dir())
SILENCED = [folder for folder in FOLDERS if folder.name.startswith("silenced_by_")]


def name_of(folder: Path) -> str:
    return "/".join(folder.parts[-3:])


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_fires_where_it_should_and_only_there(folder: Path) -> None:
    rule, kind, name = folder.parts[-3:]
    report = judged(read(folder))
    assert (rule in fired(report)) == (kind == "fires")
    # A rule that was not checked is quiet for another reason than the one that the curve is about.
    assert (rule in {skipped.rule for skipped in report.checks.skipped}) == name.startswith("unchecked_")
    assert (rule in report.checks.ran) != name.startswith("unchecked_")


@pytest.mark.parametrize("folder", [f for f in FOLDERS if f.parts[-2] == "fires"], ids=name_of)
def test_a_message_has_the_numbers_of_the_run(folder: Path) -> None:
    """Where a value is missing the summary stands in its place: a message names what its rule always knows."""
    rule = next(one for one in shipped_rules() if one.id == folder.parts[-3])
    told = [f.message for f in judged(read(folder)).findings if f.rule == rule.id]
    assert rule.summary not in told


# GT6xx are about replayed steps, GT519 about logs of many megabytes, GT525 about several runs: tested with what brings
# them about.
WITHOUT_FOLDER = ("GT6", "GT519", "GT525")


@pytest.mark.parametrize("rule", [rule.id for rule in shipped_rules() if not rule.id.startswith(WITHOUT_FOLDER)])
def test_every_rule_has_both(rule: str) -> None:
    kinds = {folder.parts[-2] for folder in FOLDERS if folder.parts[-3] == rule}
    assert kinds == {"fires", "quiet"}


def test_every_case_is_of_a_rule() -> None:
    assert {folder.parts[-3] for folder in FOLDERS} <= {rule.id for rule in shipped_rules()}


@pytest.mark.parametrize("folder", SILENCED, ids=name_of)
def test_what_silences_a_rule_is_all_that_keeps_it_quiet(folder: Path) -> None:
    silenced, other = folder.parts[-3], folder.name.removeprefix("silenced_by_")
    log = read(folder)
    assert other in fired(judged(log))
    without = [
        replace(rule, unless=tuple(i for i in rule.unless if i != other)) if rule.id == silenced else rule
        for rule in shipped_rules()
    ]
    assert silenced in fired(judged(log, without))


def test_silencing_is_tried_on_most_rules_that_can_be_silenced() -> None:
    can_be = {rule.id for rule in shipped_rules() if rule.unless}
    tried = {folder.parts[-3] for folder in SILENCED}
    # GT202 and GT201 exclude each other, GT302's and others' partners are tried one by one above.
    assert len(tried & can_be) >= 0.7 * len(can_be)
