from __future__ import annotations

from gradtrend.model.replay import Outcome, ReplayCause
from gradtrend.model.rule import ReplayTopic


def test_the_topics_of_rules_are_the_causes_and_the_outcomes_without_one() -> None:
    outcomes = [outcome.value for outcome in Outcome if outcome is not Outcome.CONFIRMED]
    assert sorted(ReplayTopic) == sorted([*(cause.value for cause in ReplayCause), *outcomes])
