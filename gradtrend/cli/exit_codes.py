"""What a call comes to: the exit code, and which runs are to blame for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from gradtrend.errors import ConfigError
from gradtrend.model.finding import Finding
from gradtrend.model.report import Failure, Report, RunReport
from gradtrend.model.rule import Rule
from gradtrend.model.words import Severity, Verdict
from gradtrend.pipeline.selection import near, rule_ids, split_list

if TYPE_CHECKING:
    from gradtrend.model.replay import Replay

_NEVER = "never"


class Exit(IntEnum):
    """The exit codes, as documented."""

    OK = 0
    FOUND = 1
    USAGE = 2
    NOT_JUDGED = 3
    BUG = 4
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Policy:
    """What counts against a call: findings of `severity` or worse, those of `rules`, and runs not judged."""

    severity: Severity | None = Severity.ERROR
    rules: frozenset[str] = frozenset()
    allow_undetermined: bool = False

    def fails(self, finding: Finding) -> bool:
        """Whether this finding counts."""
        if finding.rule in self.rules:
            return True
        return self.severity is not None and finding.severity.rank >= self.severity.rank

    def blames(self, run: RunReport) -> bool:
        """Whether this run counts: it has a finding that does, or it could not be judged."""
        return any(self.fails(f) for f in run.findings) or (
            run.verdict is Verdict.UNDETERMINED and not self.allow_undetermined
        )


def parse_fail_on(text: str, rules: Sequence[Rule]) -> tuple[Severity | None, frozenset[str]]:
    """`--fail-on`: a severity, `never`, or a comma list of rule ids and names (a severity may stand among them).

    Raises `ConfigError` for an unknown word, with what comes near it.
    """
    words = split_list([text])
    levels = [Severity(word.lower()) for word in words if word.lower() in set(Severity)]
    names = [word for word in words if word.lower() not in {*Severity, _NEVER}]
    if not words or (len(words) > 1 and _NEVER in words):
        raise ConfigError("--fail-on: give a severity, rule ids and names, or never alone")
    try:
        ids = rule_ids(names, rules, "--fail-on")
    except ConfigError as error:
        unknown = next(name for name in names if repr(name) in error.message)
        raise ConfigError(error.message, near(unknown, rules, (*Severity, _NEVER))) from None
    return min(levels, key=lambda level: level.rank, default=None), ids


def exit_code(runs: Sequence[RunReport], failures: Sequence[Failure], policy: Policy, exit_zero: bool = False) -> Exit:
    """The exit code of a call: a bug before a finding, a finding before a run that could not be judged."""
    if any(failure.bug for failure in failures):
        return Exit.BUG
    if exit_zero:
        return Exit.OK
    if any(policy.fails(finding) for run in runs for finding in run.findings):
        return Exit.FOUND
    blamed = failures and not policy.allow_undetermined
    return Exit.NOT_JUDGED if blamed or any(policy.blames(run) for run in runs) else Exit.OK


def replay_exit_code(replays: Sequence[Replay]) -> Exit:
    """The exit code of `gradtrend replay`: a bad step before one that nothing is known of, over all captures."""
    from gradtrend.model.replay import Outcome  # which judging logs does without

    outcomes = {replay.outcome for replay in replays}
    if outcomes & {Outcome.CONFIRMED, Outcome.FLAKY}:
        return Exit.FOUND
    needs_trust = any(replay.outcome is Outcome.INSPECTED and replay.inspection.looks_bad for replay in replays)
    return Exit.NOT_JUDGED if needs_trust or Outcome.CANNOT_RUN in outcomes else Exit.OK


def blamed_only(report: Report, policy: Policy) -> Report:
    """The report without the runs that do not count against the call (`--quiet`)."""
    failures = tuple(f for f in report.failures if f.bug or not policy.allow_undetermined)
    return Report(report.exit_code, tuple(run for run in report.runs if policy.blames(run)), failures)
