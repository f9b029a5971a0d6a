"""What was concluded: findings, one report a run, one report a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gradtrend.model.advice import Advice, SoFar
from gradtrend.model.capture import Capture, OverflowReport
from gradtrend.model.finding import Finding, by_weight
from gradtrend.model.rule import Rule
from gradtrend.model.runlog import Settings, Source
from gradtrend.model.words import Cause, Order, Role, Severity, Trend, Verdict

if TYPE_CHECKING:
    from gradtrend.model.replay import Replay
    from gradtrend.model.series import Outline

SCHEMA_VERSION = "1.1"


@dataclass(frozen=True, slots=True)
class SeriesReport:
    """One series as judged. `trend` is None unless it is a gradient norm.

    `peak` is the largest finite value, `decades` is log10(peak / baseline). `covers` is the share of the run's steps
    over which the series is logged; of a loss that diverges `onset_step` is where it left its best level.

    Not part of the JSON report: `sketch`, at most 60 values for a sparkline, the largest finite one of each equal share
    of the steps (of a share without points the one before; NaN or inf where none is finite); `gaps`, the places in it
    of shares where some values, but not all, are non-finite; `last`, the last value; `lowest`, the least
    finite value; `outline`, what a chart draws, which is there only where one was asked for.
    """

    metric: str
    role: Role
    layer: str | None
    points: int
    first_step: int | None
    last_step: int | None
    trend: Trend | None = None
    onset_step: int | None = None
    baseline: float | None = None
    peak: float | None = None
    decades: float | None = None
    sketch: tuple[float, ...] = ()
    covers: float | None = None
    outline: Outline | None = None
    gaps: tuple[int, ...] = ()
    last: float | None = None
    lowest: float | None = None


@dataclass(frozen=True, slots=True)
class NonFinite:
    """Non-finite values in gradient norm and loss, and how they are tied. See `Order` and `Cause`."""

    grad_first_step: int | None
    loss_first_step: int | None
    order: Order | None
    cause: Cause | None
    forward_first_step: int | None
    lead_steps: int | None
    recovered: bool
    grad_count: int
    loss_count: int


@dataclass(frozen=True, slots=True)
class SkippedRule:
    """A rule that could not be checked on this run, and why."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Checks:
    """Which rules were checked on a run."""

    ran: tuple[str, ...] = ()
    skipped: tuple[SkippedRule, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class RunReport:
    """The judgement of one run. `run` is its path as given, of a store's run joined with its id; `name` is what the
    store calls it. `confidence` is None when undetermined.

    `next` is what to do, in order; `so_far` what the few points of an undetermined run look like. `folder` is where
    its captures lie on this machine.
    """

    run: str
    verdict: Verdict
    confidence: float | None
    sources: tuple[Source, ...] = ()
    series: tuple[SeriesReport, ...] = ()
    nonfinite: NonFinite | None = None
    findings: tuple[Finding, ...] = ()
    checks: Checks = Checks()
    captures: tuple[Capture, ...] = ()
    overflow_reports: tuple[OverflowReport, ...] = ()
    settings: Settings = field(default_factory=Settings)
    next: tuple[Advice, ...] = ()
    so_far: SoFar | None = None
    replays: Mapping[str, Replay] | None = None
    name: str | None = None
    folder: Path | None = None

    def __repr__(self) -> str:
        sure = "" if self.confidence is None else f", confidence {self.confidence}"
        return f"RunReport({self.verdict}{sure}, run={self.run!r}, why={self.why!r})"

    @property
    def why(self) -> str:
        """The message of the finding that gave the verdict, else of the weightiest; empty where there is none."""
        names = (self.verdict.value, f"{self.verdict.value}-layer")
        ranked = sorted(by_weight(self.findings), key=lambda finding: finding.name not in names)
        return ranked[0].message if ranked else ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A path that could not be read at all. `bug` is a traceback when gradtrend itself is at fault (exit code 4);
    `passing` says that it lies in this moment, not in what was to be read: another try may do better.
    """

    path: str
    message: str
    hint: str | None = None
    bug: str | None = None
    passing: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """What counts against a call: findings of `severity` or worse, those of `rules`, and runs not judged; a finding
    that a baseline knows never does.
    """

    severity: Severity | None = Severity.ERROR
    rules: frozenset[str] = frozenset()
    allow_undetermined: bool = False

    def fails(self, finding: Finding) -> bool:
        """Whether this finding counts."""
        if finding.known:
            return False
        if finding.rule in self.rules:
            return True
        return self.severity is not None and finding.severity.rank >= self.severity.rank

    def failing(self, run: RunReport) -> tuple[Finding, ...]:
        """The findings of this run that count."""
        return tuple(finding for finding in run.findings if self.fails(finding))

    def blames(self, run: RunReport) -> bool:
        """Whether this run counts: it has a finding that does, or it could not be judged."""
        return bool(self.failing(run)) or (run.verdict is Verdict.UNDETERMINED and not self.allow_undetermined)


@dataclass(frozen=True, slots=True)
class Anchor:
    """A file of a project that findings are told at, where the logs are not in it: `file` as its repository has it
    (`configs/train.yaml`), `line` from 1.
    """

    file: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one call: of its runs, and of the paths that could not be read.

    `policy` says what of it counts, and so which runs made the exit code; `rules` are those that were in force.
    `folder` is the absolute path of the working folder, below which paths are those of a project, or empty; `anchor` is
    where findings are told in formats that point at files.
    """

    exit_code: int
    runs: tuple[RunReport, ...] = ()
    failures: tuple[Failure, ...] = ()
    policy: Policy = Policy()
    rules: tuple[Rule, ...] = ()
    anchor: Anchor | None = None
    folder: str = ""
