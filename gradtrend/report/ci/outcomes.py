"""What a call comes to, as all formats of this folder see it: what fails, in which order, under which names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import IntEnum
from pathlib import PurePath

from gradtrend.model.finding import Finding, by_weight
from gradtrend.model.identity import below, stable_name
from gradtrend.model.report import Failure, Report, RunReport
from gradtrend.model.words import Severity, Verdict
from gradtrend.report.wording.escape import escape
from gradtrend.report.wording.failures import failure_message
from gradtrend.report.wording.numbers import counted_in, plural, steps

_BINARY = frozenset({"tensorboard", "mlflow", "trackio", "wandb"})  # formats whose files nobody looks into


class Level(IntEnum):
    """How loud something is told: an error made the exit code non-zero, a warning could have under another policy."""

    NOTICE = 0
    WARNING = 1
    ERROR = 2


def level_of(finding: Finding, report: Report) -> Level:
    """An error where the finding counts against the call; nothing else is, so that formats agree with the exit code."""
    if report.policy.fails(finding):
        return Level.ERROR
    return Level.NOTICE if finding.known or finding.severity is Severity.INFO else Level.WARNING


def level_unjudged(report: Report, failure: Failure | None = None) -> Level:
    """How loud a run is told that could not be judged, or a path that could not be read. A bug is always an error."""
    allowed = report.policy.allow_undetermined and (failure is None or failure.bug is None)
    return Level.WARNING if allowed else Level.ERROR


def is_unjudged(run: RunReport) -> bool:
    """Whether a run was read and could not be judged."""
    return run.verdict is Verdict.UNDETERMINED


def worst_first(report: Report) -> list[RunReport]:
    """The runs with findings that count, then those not judged, each by verdict, then the others."""
    order = list(Verdict)
    policy = report.policy
    return sorted(
        report.runs, key=lambda run: (not policy.failing(run), not policy.blames(run), order.index(run.verdict))
    )


def grouped(run: RunReport, report: Report) -> list[list[Finding]]:
    """The findings of one rule and level together, the loudest and weightiest first."""
    groups: dict[tuple[str, Level], list[Finding]] = {}
    for finding in by_weight(run.findings):
        groups.setdefault((finding.rule, level_of(finding, report)), []).append(finding)
    return sorted(groups.values(), key=lambda group: -level_of(group[0], report))


def title_of(run: RunReport) -> str:
    """The path of a run, and what its store calls it where the path does not end so; safe to show."""
    named = run.name is not None and PurePath(run.run).name != run.name
    return escape(f"{run.run} ({run.name})" if named else run.run)


def group_message(group: Sequence[Finding], run: RunReport) -> str:
    """What the findings of one rule say, where, and how many more like it there are; safe to show."""
    top = group[0]
    where = steps(top.first_step, top.last_step, counted_in(run))
    more = f" ({plural(len(group) - 1, 'more finding')} of this rule)" if len(group) > 1 else ""
    known = " [known]" if top.known else ""
    return escape(f"{top.message}{f' ({where})' if where else ''}{more}{known}")


def failure_text(failure: Failure) -> str:
    """Why a path could not be read and what can be done; safe to show."""
    text = escape(failure_message(failure))
    return f"{text} {escape(failure.hint)}" if failure.hint else text


def counted(report: Report) -> str:
    """`4 runs: 1 exploding, 3 stable; 1 path could not be read`."""
    verdicts = Counter(run.verdict for run in report.runs)
    each = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in Verdict if verdicts[verdict])
    parts = [f"{plural(len(report.runs), 'run')}{f': {each}' if each else ''}"]
    if report.failures:
        parts.append(f"{plural(len(report.failures), 'path')} could not be read")
    return "; ".join(parts)


def place_of(run: RunReport, report: Report) -> tuple[str, int | None] | None:
    """The file, and line, of a project at which findings of a run are told: the anchor, else the first of its logs,
    those of text before others, that lies below the working folder; None where none does.
    """
    if report.anchor is not None:
        return report.anchor.file, report.anchor.line
    if run.folder is None:
        return None
    sources = sorted(run.sources, key=lambda source: source.format in _BINARY)
    logs = (below(str(run.folder / source.path), report.folder) for source in sources)
    return next(((log, None) for log in logs if log is not None), None)


def place_of_failure(failure: Failure, report: Report) -> tuple[str, int | None] | None:
    """The file of a project at which a path that could not be read is told."""
    if report.anchor is not None:
        return report.anchor.file, report.anchor.line
    path = None if "://" in failure.path else below(failure.path, report.folder)
    return None if path is None else (path, None)


def told_apart(names: Sequence[str]) -> Iterator[str]:
    """The names, those that stand there already with a number behind them: readers take equal ones for one."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} ({seen[name]})"


def name_of(run: RunReport, report: Report) -> str:
    """A run's `stable_name`."""
    return stable_name(run.run, report.folder)
