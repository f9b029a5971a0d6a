"""What a project has said of findings before: some are ignored, some are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gradtrend.model.finding import Finding
from gradtrend.model.identity import stable_name
from gradtrend.model.report import Policy, RunReport
from gradtrend.pipeline.baseline import Known, baseline_text, known_by
from gradtrend.pipeline.config import Ignore
from gradtrend.pipeline.selection import keeping


class Settlement:
    """Takes each run of a call once, in any order, leaves out what is ignored and marks what is known; knows
    afterwards what of both matched nothing. With `recording` all that counts by `policy` is known from now on.

    `folder` is the absolute path of the working folder: names of runs begin there.
    """

    def __init__(
        self, ignores: Sequence[Ignore], known: Counter[Known], policy: Policy, folder: str, recording: bool = False
    ) -> None:
        self._ignores = tuple(ignores)
        self._left = Counter(known)
        self._policy = policy
        self._folder = folder
        self._recording = recording
        self._used: set[int] = set()
        self._runs: set[str] = set()
        self._recorded: Counter[Known] = Counter()
        self._names: dict[str, str] = {}

    def settled(self, run: RunReport) -> RunReport:
        """The run without ignored findings, its known ones marked. The verdict stays."""
        if not (self._ignores or self._left or self._recording):
            return run
        name = stable_name(run.run, self._folder)
        self._runs.add(name)
        kept = [finding for finding in run.findings if not self._is_ignored(finding, (run.run, name, run.name or ""))]
        run = keeping(run, kept) if len(kept) < len(run.findings) else run
        return replace(run, findings=tuple(self._marked(finding, name) for finding in run.findings))

    def baseline(self) -> str:
        """The text of a baseline of all that counted."""
        return baseline_text(self._recorded, self._names)

    def unused(self) -> list[Ignore]:
        """The ignores that matched nothing."""
        return [ignore for place, ignore in enumerate(self._ignores) if place not in self._used]

    def gone(self) -> list[Known]:
        """The known findings that runs of this call no longer have."""
        return sorted(one for one, count in self._left.items() if count > 0 and one.run in self._runs)

    def _is_ignored(self, finding: Finding, names: Sequence[str]) -> bool:
        matching = [place for place, ignore in enumerate(self._ignores) if ignore.matches(finding, names)]
        self._used.update(matching)
        return bool(matching)

    def _marked(self, finding: Finding, run: str) -> Finding:
        one = known_by(run, finding)
        is_known = self._left[one] > 0
        if is_known:
            self._left[one] -= 1
        if self._recording and self._policy.fails(finding):
            self._recorded[one] += 1
            self._names[finding.rule] = finding.name
            is_known = True
        return replace(finding, known=True) if is_known else finding


def remarks(settlement: Settlement, config: Path | None, baseline: Path | None) -> list[str]:
    """What of a project's settings matched nothing, one sentence each."""
    found = [f"{config}: ignore {ignore} matched nothing" for ignore in settlement.unused()]
    gone = [f"{baseline}: {one} is gone; --write-baseline forgets it" for one in settlement.gone()]
    return found + gone
