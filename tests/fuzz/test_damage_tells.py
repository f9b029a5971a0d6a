"""A damaged log is never judged well without a word: cutting or flipping the log of a sick run leaves it sick, or the
damage is said. A cut at the end of a line leaves a whole log of a shorter run, and is none.

`GRADTREND_DAMAGES=300` tries so many a format.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

import gradtrend
from gradtrend import RunReport
from tests.fuzz.damages import CASES, ENDS, damaged, files_of
from tests.places import CAPTURES, RUNS

DAMAGES = int(os.environ.get("GRADTREND_DAMAGES", "40"))
WELL = {"stable", "warmup-spike"}


def reports(path: Path) -> list[RunReport] | None:
    """The reports on a path, None where something could not be read, which is said."""
    try:
        return list(gradtrend.analyze_all(str(path)))
    except gradtrend.InputError:
        return None


def said(reports: Sequence[RunReport]) -> tuple[int, set[str]]:
    """How many pieces were left out, and the findings on the log itself."""
    skipped = sum(source.skipped_count for report in reports for source in report.sources)
    return skipped, {one.rule for report in reports for one in report.findings if one.rule.startswith("GT5")}


@pytest.mark.parametrize("form", CASES)
def test_no_damage_makes_a_sick_run_well_without_a_word(tmp_path: Path, form: str) -> None:
    chance = random.Random(f"damage of {form}")
    silent: list[str] = []
    for case in CASES[form]:
        place = tmp_path / Path(case.path).name
        (shutil.copytree if (RUNS / case.path).is_dir() else shutil.copyfile)(RUNS / case.path, place)
        before = reports(place)
        assert before is not None
        sick = {report.run for report in before if report.verdict not in {*WELL, "undetermined"}}
        assert sick
        skipped, findings = said(before)
        files = files_of(case)
        for _ in range(max(1, DAMAGES // len(CASES[form]))):
            file = chance.choice(files)
            target = place if place.is_file() else place / file.relative_to(RUNS / case.path)
            whole = target.read_bytes()
            piece, what = damaged(whole, chance, ENDS[form])
            target.write_bytes(piece)
            after = reports(place)
            target.write_bytes(whole)
            if after is None:
                continue
            now = said(after)
            well = {report.run for report in after if report.verdict in WELL}
            if (len(after) < len(before) or (sick & well)) and now[0] <= skipped and now[1] <= findings:
                silent.append(f"{case.path} {file.name}: {what}")
    assert not silent, "\n".join(silent)


def test_no_damage_makes_a_bad_capture_good(tmp_path: Path) -> None:
    chance = random.Random("damage of captures")
    capture = tmp_path / "nan_capture.pt"
    shutil.copyfile(next(CAPTURES.rglob("nan_capture.pt")), capture)
    whole = capture.read_bytes()
    (before,) = gradtrend.replay(str(capture))
    bad = {finding.rule for finding in before.findings}
    assert bad == {"GT612"}
    for _ in range(DAMAGES):
        piece, what = damaged(whole, chance, ENDS["captures"])
        capture.write_bytes(piece)
        (after,) = gradtrend.replay(str(capture))
        assert {finding.rule for finding in after.findings} & {*bad, "GT611"}, what
