"""Rules on replayed steps: which one holds, and what it says, stands in the rule files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from gradtrend.detect.rules import load_rules, rule_text
from gradtrend.model.replay import Inspection, Outcome, Replay, ReplayCause
from gradtrend.replay import with_findings
from tests.places import CAPTURES

Call = Callable[..., Result]
INSPECTION = Inspection("debug/step7.pt", "native", 7, 0, None)


def test_each_outcome_has_one_rule_that_says_the_reasons() -> None:
    causes = [Replay(INSPECTION, Outcome.CONFIRMED, cause, why=("Because.",)) for cause in ReplayCause]
    others = [Replay(INSPECTION, o, why=("Because.",)) for o in Outcome if o not in ("confirmed", "inspected")]
    found = [with_findings(replay, load_rules()).findings for replay in (*causes, *others)]
    ids = [*(f"GT60{number}" for number in range(1, 9)), "GT613", "GT609", "GT610", "GT611"]
    assert [[finding.rule for finding in findings] for findings in found] == [[rule] for rule in ids]
    assert {finding.message for findings in found for finding in findings} == {"Because."}


def test_without_reasons_the_summary_stands() -> None:
    (finding,) = with_findings(Replay(INSPECTION, Outcome.FLAKY), load_rules()).findings
    assert finding.message == "The same step gives different results each time."


def test_a_capture_that_was_only_looked_at_is_no_finding_unless_it_is_nonfinite() -> None:
    assert not with_findings(Replay(INSPECTION, Outcome.INSPECTED, why=("Nothing was run.",)), load_rules()).findings


def test_an_overriding_rule_says_what_it_is_for_and_in_which_words(call: Call, tmp_path: Path) -> None:
    def rules() -> list[str]:
        done = call("replay", CAPTURES / "lightly_train", "--format", "json", "--rules", tmp_path)
        return [f"{found['rule']}: {found['message']}" for found in json.loads(done.stdout)["replays"][0]["findings"]]

    (shipped,) = rules()
    assert shipped.startswith("GT612: Nothing was run. Already non-finite in the file: ")
    text = rule_text("GT612")
    (tmp_path / "words.toml").write_text(text.replace('message = "{note}"', 'message = "Step {capture_step}: {note}"'))
    assert rules() == [shipped.replace("GT612: ", "GT612: Step 0: ")]
    (tmp_path / "words.toml").write_text(text.replace('replay = "inspected"', 'replay = "flaky"'))
    assert rules() == []
    (tmp_path / "words.toml").write_text(text.replace('"GT612"', '"US612"').replace('"{note}"', '"Mine."'))
    assert rules() == [shipped, "US612: Mine."]
