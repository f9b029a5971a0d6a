"""What a call comes to: the exit code, and which runs are to blame for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING

from gradtrend.model.report import Failure, Policy, Report, RunReport

if TYPE_CHECKING:
    from gradtrend.model.replay import Replay


class Exit(IntEnum):
    """The exit codes, as documented."""

    OK = 0
    FOUND = 1
    USAGE = 2
    NOT_JUDGED = 3
    BUG = 4
    INTERRUPTED = 130


def exit_code(runs: Sequence[RunReport], failures: Sequence[Failure], policy: Policy, exit_zero: bool = False) -> Exit:
    """The exit code of a call: a bug before a finding, a finding before a run that could not be judged."""
    if any(failure.bug for failure in failures):
        return Exit.BUG
    if exit_zero:
        return Exit.OK
    if any(policy.failing(run) for run in runs):
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
    return replace(report, runs=tuple(run for run in report.runs if policy.blames(run)), failures=failures)
