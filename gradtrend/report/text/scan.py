"""Many runs for people: how many have which verdict, and the worst as a table."""

from __future__ import annotations

from collections.abc import Sequence

from gradtrend.model.many.contrast import Contrasts, Outcome
from gradtrend.model.many.record import Record, by_badness, counted
from gradtrend.report.text.lines import wrapped
from gradtrend.report.text.table import common_folder, head_lines, line
from gradtrend.report.wording.contrast import contrast_lines
from gradtrend.report.wording.style import Style
from gradtrend.report.wording.subject import run_title

UNREADABLE = "unreadable"  # what is said in place of a verdict of runs that could not be read


def scan_text(
    records: Sequence[Record], rows: int | None, tells: Sequence[str], style: Style, kept: bool = False
) -> str:
    """The runs that are not well as a table, the worst first, at most `rows` of them; what tells the sick from the
    healthy, as `tells` has it; and how many have which verdict. `kept` says that all are written to a file.
    """
    ill = [record for record in by_badness(records) if not record.is_well]
    shown = ill if rows is None else ill[:rows]
    below = common_folder([record.run for record in records])
    lines = [*head_lines(below, style), *(_row(record, below, style) for record in shown)] if shown else []
    if len(shown) < len(ill):
        left = len(ill) - len(shown)
        count = (
            f"{left:,} more that {'is' if left == 1 else 'are'}"
            if shown
            else f"{left:,} that {'is' if left == 1 else 'are'}"
        )
        how = f"--rows {len(ill)} lists {'it' if left == 1 else 'them'}" + ("" if kept else ", -o runs.jsonl keeps all")
        lines.append(style.paint(f"{count} not well: {how}", "dim"))
    blocks = [lines, _in_lines(tells, style), [scan_summary(records)]]
    return "\n".join("".join(f"{one}\n" for one in block) for block in blocks if block)


def what_tells(contrasts: Contrasts) -> tuple[str, ...]:
    """What tells the sick runs from the healthy ones, in sentences; none where all runs are sick, or none is."""
    return () if contrasts.outcome is Outcome.ONE_SIDED else tuple(contrast_lines(contrasts))


def _in_lines(tells: Sequence[str], style: Style) -> list[str]:
    if not tells:
        return []
    title = style.paint("What tells the sick runs from the healthy ones", "bold")
    return [title, *(line for tell in tells for line in wrapped(tell, style, "  ", "    "))]


def scan_summary(records: Sequence[Record]) -> str:
    """`4,012 runs: 31 exploding, 3,975 stable, 6 unreadable`."""
    parts = [f"{count:,} {UNREADABLE if verdict is None else verdict}" for verdict, count in counted(records).items()]
    return f"{len(records):,} run{'s' * (len(records) != 1)}" + (f": {', '.join(parts)}" if parts else "")


def _row(record: Record, below: str, style: Style) -> str:
    title = run_title(record.run.removeprefix(below), record.name)
    why = record.brief if record.failure is None else _reason(record.run, record.failure)
    return line(record.verdict, record.confidence, record.onset_step, record.last, why, title, record.is_well, style)


def _reason(run: str, failure: str) -> str:
    """Why a run could not be read, without its name, or the path of a log below it, which may stand before."""
    if not failure.startswith((f"{run}: ", f"{run}/")):
        return failure
    return failure.removeprefix(run).partition(": ")[2] or failure
