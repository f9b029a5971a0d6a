from __future__ import annotations

import math
from typing import Any

import pytest

from gradtrend.cli.exit_codes import Exit, blamed_only, exit_code, replay_exit_code
from gradtrend.errors import ConfigError
from gradtrend.model.finding import Finding
from gradtrend.model.replay import Inspection, Outcome, Replay, TensorHealth
from gradtrend.model.report import Failure, Policy, Report, RunReport
from gradtrend.model.rule import Rule
from gradtrend.model.words import Severity, Verdict
from gradtrend.pipeline.selection import parse_fail_on

RULES = (
    Rule("GT101", "exploding", Severity.ERROR, "", ""),
    Rule("GT104", "drift", Severity.WARNING, "", ""),
    Rule("GT501", "post-clip", Severity.INFO, "", ""),
)
MISSING = Failure("x", "no such path")
BUG = Failure("x", "ValueError", None, "Traceback")


def _run(*ids: str, verdict: Verdict = Verdict.STABLE) -> RunReport:
    findings = tuple(Finding(r.id, r.name, r.severity, 1.0, "") for r in RULES if r.id in ids)
    return RunReport("r", verdict, None, findings=findings)


UNJUDGED = _run("GT104", verdict=Verdict.UNDETERMINED)


@pytest.mark.parametrize(
    ("fail_on", "expected"),
    [
        ("error", {"GT101"}),
        ("warning", {"GT101", "GT104"}),
        ("info", {"GT101", "GT104", "GT501"}),
        ("INFO", {"GT101", "GT104", "GT501"}),
        ("never", set()),
        ("exploding", {"GT101"}),
        ("gt101,Drift", {"GT101", "GT104"}),
        ("GT5", {"GT501"}),
        (" error , GT501", {"GT101", "GT501"}),
    ],
)
def test_what_fail_on_counts(fail_on: str, expected: set[str]) -> None:
    policy = Policy(*parse_fail_on(fail_on, RULES))
    assert {f.rule for f in _run("GT101", "GT104", "GT501").findings if policy.fails(f)} == expected


@pytest.mark.parametrize(
    ("text", "hint"), [("explodng", "exploding"), ("GT110", "GT101"), ("eror", "error"), ("nver", "never")]
)
def test_an_unknown_word_is_refused_with_what_comes_near(text: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        parse_fail_on(f"GT101,{text}", RULES)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["", " , ", "never,GT101"])
def test_fail_on_needs_something_that_makes_sense(text: str) -> None:
    with pytest.raises(ConfigError, match="--fail-on"):
        parse_fail_on(text, RULES)


@pytest.mark.parametrize(
    ("runs", "failures", "expected"),
    [
        ([_run()], [], Exit.OK),
        ([_run("GT104")], [], Exit.OK),
        ([_run("GT101")], [], Exit.FOUND),
        ([_run("GT101"), UNJUDGED], [MISSING], Exit.FOUND),
        ([_run(), UNJUDGED], [], Exit.NOT_JUDGED),
        ([_run()], [MISSING], Exit.NOT_JUDGED),
        ([], [MISSING], Exit.NOT_JUDGED),
        ([_run("GT101")], [BUG], Exit.BUG),
    ],
)
def test_exit_code(runs: list[RunReport], failures: list[Failure], expected: Exit) -> None:
    assert exit_code(runs, failures, Policy()) == expected


def test_allow_undetermined_forgives_only_what_could_not_be_judged() -> None:
    lenient = Policy(allow_undetermined=True)
    assert exit_code([UNJUDGED], [MISSING], lenient) == Exit.OK
    assert exit_code([UNJUDGED, _run("GT101")], [], lenient) == Exit.FOUND
    assert exit_code([UNJUDGED], [], Policy(Severity.WARNING, allow_undetermined=True)) == Exit.FOUND


def test_exit_zero_forgives_everything_but_a_bug() -> None:
    assert exit_code([_run("GT101"), UNJUDGED], [MISSING], Policy(), exit_zero=True) == Exit.OK
    assert exit_code([], [BUG], Policy(), exit_zero=True) == Exit.BUG


def _replay(outcome: Outcome, **seen: Any) -> Replay:
    return Replay(Inspection("c", "gradtrend", 1, 0, "m", **seen), outcome)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (["not-reproduced", "inspected"], Exit.OK),
        (["not-reproduced", "confirmed", "cannot-run"], Exit.FOUND),
        (["flaky"], Exit.FOUND),
        (["not-reproduced", "cannot-run"], Exit.NOT_JUDGED),
    ],
)
def test_a_bad_step_counts_before_one_that_nothing_is_known_of(outcomes: list[str], expected: Exit) -> None:
    assert replay_exit_code([_replay(Outcome(outcome)) for outcome in outcomes]) == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({"loss": 1.0, "gradient_norm": 3e4}, Exit.OK),
        ({"bad_parameters": ("w",)}, Exit.NOT_JUDGED),
        ({"loss": math.nan}, Exit.NOT_JUDGED),
        ({"gradient_norm": math.inf}, Exit.NOT_JUDGED),
        ({"nonfinite": (TensorHealth("input", "x", "float32", (1,), 1, 0, 0),)}, Exit.NOT_JUDGED),
    ],
)
def test_what_looks_bad_and_was_only_inspected_is_not_judged(seen: dict[str, Any], expected: Exit) -> None:
    assert replay_exit_code([_replay(Outcome.INSPECTED, **seen)]) == expected
    assert replay_exit_code([_replay(Outcome.NOT_REPRODUCED, **seen)]) == Exit.OK


def test_quiet_keeps_what_the_exit_code_is_about() -> None:
    bad, fine = _run("GT101"), _run("GT104")
    report = Report(1, (bad, fine, UNJUDGED), (MISSING, BUG))
    assert blamed_only(report, Policy()) == Report(1, (bad, UNJUDGED), (MISSING, BUG))
    assert blamed_only(report, Policy(allow_undetermined=True)) == Report(1, (bad,), (BUG,))
