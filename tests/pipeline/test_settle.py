from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from gradtrend.model.advice import Advice
from gradtrend.model.finding import Finding
from gradtrend.model.report import Policy, RunReport
from gradtrend.model.words import Severity, Verdict
from gradtrend.pipeline.baseline import Known, read_baseline
from gradtrend.pipeline.config import Ignore
from gradtrend.pipeline.settle import Settlement, remarks

SPIKE = Finding("GT105", "spike", Severity.WARNING, 0.9, "m", "enc/norm", None, 5, 9)
EXPLODING = Finding("GT101", "exploding", Severity.ERROR, 0.9, "m", "norm")
RUN = RunReport(
    "/project/runs/a",
    Verdict.EXPLODING,
    0.9,
    findings=(EXPLODING, SPIKE),
    next=(Advice("lower-lr", "Lower it.", ("GT101",)), Advice("clip-lower", "Clip.", ("GT105",))),
)


def settlement(*ignores: Ignore, known: Counter[Known] | None = None, recording: bool = False) -> Settlement:
    return Settlement(ignores, known or Counter(), Policy(), "/project", recording)


def ignore(**patterns: str) -> Ignore:
    return Ignore("GT105", frozenset({"GT105"}), **patterns)


def rules(run: RunReport) -> list[str]:
    return [finding.rule for finding in run.findings]


def test_what_is_ignored_goes_with_its_advice() -> None:
    settled = settlement(ignore(reason="data")).settled(RUN)
    assert rules(settled) == ["GT101"]
    assert [one.action for one in settled.next] == ["lower-lr"]
    assert settled.verdict is Verdict.EXPLODING


def test_patterns_of_metric_and_run() -> None:
    assert rules(settlement(ignore(metric="enc/*", run="runs/?")).settled(RUN)) == ["GT101"]
    assert rules(settlement(ignore(run="/project/*")).settled(RUN)) == ["GT101"]
    assert rules(settlement(ignore(metric="dec/*")).settled(RUN)) == ["GT101", "GT105"]
    assert rules(settlement(ignore(run="runs/b")).settled(RUN)) == ["GT101", "GT105"]


def test_an_ignore_that_matched_nothing_is_told() -> None:
    used, unused = ignore(metric="enc/*"), ignore(metric="dec/*")
    settling = settlement(used, unused)
    settling.settled(RUN)
    assert settling.unused() == [unused]
    (text,) = remarks(settling, Path("pyproject.toml"), None)
    assert text == "pyproject.toml: ignore GT105 (metric dec/*) matched nothing"


def test_a_known_finding_is_marked_and_does_not_count() -> None:
    settled = settlement(known=Counter([Known("runs/a", "GT101", "norm")])).settled(RUN)
    assert [finding.known for finding in settled.findings] == [True, False]
    assert not Policy().failing(settled)


def test_one_more_than_is_known_is_new() -> None:
    twice = replace(RUN, findings=(EXPLODING, EXPLODING))
    settled = settlement(known=Counter([Known("runs/a", "GT101", "norm")])).settled(twice)
    assert len(Policy().failing(settled)) == 1


def test_what_is_gone_is_told_of_runs_that_were_looked_at() -> None:
    known = Counter([Known("runs/a", "GT102", "norm"), Known("runs/elsewhere", "GT102")])
    settling = settlement(known=known)
    settling.settled(RUN)
    assert settling.gone() == [Known("runs/a", "GT102", "norm")]
    (text,) = remarks(settling, None, Path("known.json"))
    assert text == "known.json: GT102 of norm in runs/a is gone; --write-baseline forgets it"


def test_recording_knows_what_counts_and_nothing_else(tmp_path: Path) -> None:
    settling = settlement(recording=True)
    settled = settling.settled(RUN)
    assert [finding.known for finding in settled.findings] == [True, False]
    file = tmp_path / "known.json"
    file.write_text(settling.baseline())
    assert read_baseline(file) == Counter([Known("runs/a", "GT101", "norm")])


def test_recording_again_keeps_what_is_known() -> None:
    known = Counter([Known("runs/a", "GT101", "norm")])
    settling = settlement(known=known, recording=True)
    settling.settled(RUN)
    assert '"GT101"' in settling.baseline()
