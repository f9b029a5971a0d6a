"""Many runs for people: how many have which verdict, and the worst as a table."""

from __future__ import annotations

from collections.abc import Sequence

from gradtrend.model.many.record import Record, by_badness, counted
from gradtrend.report.text.table import common_folder, head_lines, line
from gradtrend.report.wording.style import Style
from gradtrend.report.wording.subject import run_title

UNREADABLE = "unreadable"  # what is said in place of a verdict of runs that could not be read


def scan_text(records: Sequence[Record], rows: int | None, remarks: Sequence[str], style: Style) -> str:
    """The runs that are not well as a table, the worst first, at most `rows` of them; how many have which verdict; and
    what tells the sick from the healthy.
    """
    ill = [record for record in by_badness(records) if not record.is_well]
    shown = ill if rows is None else ill[:rows]
    below = common_folder([record.run for record in records])
    lines = [*head_lines(below, style), *(_row(record, below, style) for record in shown)] if shown else []
    if len(shown) < len(ill):
        more = (
            f"{len(ill) - len(shown):,} more that are not well: --rows {len(ill)} lists them, -o runs.jsonl keeps all"
        )
        lines.append(style.paint(more, "dim"))
    lines += ["", *remarks] if lines and remarks else [*remarks]
    lines += ["", scan_summary(records)] if lines else [scan_summary(records)]
    return "".join(f"{one}\n" for one in lines)


def scan_summary(records: Sequence[Record]) -> str:
    """`4,012 runs: 31 exploding, 3,975 stable, 6 unreadable`."""
    parts = [f"{count:,} {UNREADABLE if verdict is None else verdict}" for verdict, count in counted(records).items()]
    return f"{len(records):,} run{'s' * (len(records) != 1)}" + (f": {', '.join(parts)}" if parts else "")


def _row(record: Record, below: str, style: Style) -> str:
    title = run_title(record.run.removeprefix(below), record.name)
    why = record.brief if record.failure is None else record.failure.removeprefix(f"{record.run}: ")
    return line(record.verdict, record.confidence, record.onset_step, record.last, why, title, record.is_well, style)
