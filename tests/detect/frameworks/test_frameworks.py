"""The table of frameworks: what ingest can tell is known here, and options are those of actions that there are."""

from __future__ import annotations

import pytest

from gradtrend.detect.frameworks import KINDS, framework_of, frameworks
from gradtrend.ingest.settings import frameworks as lines
from gradtrend.model.advice import ACTION_IDS, LOGGING_IDS


def test_every_framework_that_a_log_gives_away_is_known() -> None:
    told = {name for name, *_ in (*lines._WORDS, *lines._LINES, *lines._METRICS)}
    assert told <= set(frameworks())


@pytest.mark.parametrize("name", frameworks())
def test_its_kinds_and_actions_are_words_that_there_are(name: str) -> None:
    framework = framework_of(name)
    assert framework.title
    assert framework.kinds <= KINDS
    assert set(framework.options) <= ACTION_IDS
    assert all(framework.options.values())


def test_what_is_not_known_has_no_options() -> None:
    assert not framework_of(None).options
    assert not framework_of("somebody's own").options


def test_logging_is_among_the_actions() -> None:
    assert LOGGING_IDS < ACTION_IDS
