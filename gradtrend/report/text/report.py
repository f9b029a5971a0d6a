"""The report for a person: Verdict, Why, Next on one screen a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gradtrend.model.advice import SoFar
from gradtrend.model.report import Failure, Report, RunReport
from gradtrend.model.runlog import Skipped, Source
from gradtrend.model.words import Severity, Verdict
from gradtrend.report.text.curves import curve_lines
from gradtrend.report.text.lines import wrapped
from gradtrend.report.text.table import LOOKS, common_folder, head_lines, row
from gradtrend.report.text.why import next_lines, why_lines
from gradtrend.report.wording.brief import by_badness, is_well
from gradtrend.report.wording.escape import escape
from gradtrend.report.wording.failures import failure_message
from gradtrend.report.wording.numbers import plural, share
from gradtrend.report.wording.style import Style
from gradtrend.report.wording.subject import run_title

_SO_FAR: dict[SoFar | None, str] = {
    SoFar.HEALTHY: "; so far it looks healthy",
    SoFar.SUSPICIOUS: "; so far it looks suspicious",
}
_MAX_SKIPPED = 3
_MAX_SOURCES = 5
_AROUND_TABLE = 8  # lines of a screen: the head, what stands below, the command and the prompt


def render_text(report: Report, style: Style, streamed: bool = False) -> str:
    """One run as a block, several as a table, the worst first, and with `verbose` a block for each that is not well;
    then the failures, and a closing line. Of runs whose rows were `streamed` already the well ones are counted.
    """
    several = len(report.runs) > 1 or streamed
    blocks = [_table(report.runs, style, streamed)] if several else [_block(run, style) for run in report.runs]
    if several and style.verbose:
        blocks += [_block(run, style) for run in by_badness(report.runs) if not is_well(run)]
    blocks += [_failure_lines(failure, style) for failure in report.failures]
    if style.summary and len(report.runs) + len(report.failures) > 1:
        blocks.append([summary(report), *_further(report, style, several)])
    lines: list[str] = []
    for before, block in zip([[], *blocks], blocks, strict=False):
        lines += [""] if before and (len(before) > 1 or len(block) > 1 or block is blocks[-1]) else []
        lines += block
    return "".join(f"{line}\n" for line in lines)


def _table(runs: Sequence[RunReport], style: Style, streamed: bool) -> list[str]:
    """A head and a row a run; the well ones are counted where their rows stand above, or where a screen has no room."""
    ranked = by_badness(runs)
    below = common_folder([run.run for run in runs])
    listed = [run for run in ranked if not (streamed and is_well(run))]
    if style.rows is not None and not style.verbose and not streamed and len(ranked) > style.rows - _AROUND_TABLE:
        listed = [run for i, run in enumerate(ranked) if i < style.rows - _AROUND_TABLE or not is_well(run)]
    lines = ["", style.paint("To look at, the worst first", "bold")] if streamed and listed else []
    lines += [*head_lines(below, style), *(row(run, below, style) for run in listed)] if listed else []
    left = len(ranked) - len(listed)
    if left:
        where = "as listed above" if streamed else "listed by -v"
        lines.append(style.paint(f"{left} {'more' if listed else 'runs'} with nothing to look at, {where}", "dim"))
    return lines


def _further(report: Report, style: Style, several: bool) -> list[str]:
    """How to see why."""
    ill = sum(not is_well(run) for run in report.runs)
    if not several or style.verbose or not ill:
        return []
    them = "it" if ill == 1 else f"the {ill} that are not well"
    return wrapped(f"Why, and what to do: gradtrend analyze RUN, or -v for {them}.", style, "", "  ")


def summary(report: Report) -> str:
    """`4 runs: 1 exploding, 3 stable; 1 error, 2 warnings, 1 known; 1 path could not be read`; errors and warnings
    that a baseline knows are counted apart.
    """
    verdicts = Counter(run.verdict for run in report.runs)
    findings = [finding for run in report.runs for finding in run.findings if finding.severity is not Severity.INFO]
    severities = Counter(finding.severity for finding in findings if not finding.known)
    known = sum(finding.known for finding in findings)
    parts = []
    if report.runs:
        counted = ", ".join(f"{verdicts[v]} {v}" for v in Verdict if verdicts[v])
        parts.append(f"{plural(len(report.runs), 'run')}: {counted}")
    found = [plural(severities[s], s.value) for s in (Severity.ERROR, Severity.WARNING) if severities[s]]
    found += [f"{known} known"] if known else []
    if found:
        parts.append(", ".join(found))
    if report.failures:
        parts.append(f"{plural(len(report.failures), 'path')} could not be read")
    return "; ".join(parts)


def short_summary(report: Report, style: Style) -> str:
    """One line: of one run its verdict, of several how many have which."""
    if len(report.runs) == 1 and not report.failures:
        return f"{_headline(report.runs[0], style)}\n"
    text = summary(report)
    return f"{text}\n" if text else ""


def _block(run: RunReport, style: Style) -> list[str]:
    lines = [_headline(run, style)]
    for title, part in (
        ("", curve_lines(run, style)),
        ("Why", why_lines(run, style)),
        ("Next", next_lines(run, style)),
        ("", _read_lines(run.sources, style)),
    ):
        if part:
            lines += ["", *([style.paint(title, "bold")] if title else []), *part]
    return lines


def _headline(run: RunReport, style: Style) -> str:
    verdict = style.paint(run.verdict.value, "bold", LOOKS[run.verdict])
    if run.verdict is Verdict.UNDETERMINED:
        verdict += f" (could not be judged{_SO_FAR.get(run.so_far, '')})"
    elif run.confidence is not None:
        verdict += f" (confidence {share(run.confidence)})"
    return f"{style.paint(escape(run_title(run.run, run.name)), 'bold')}: {verdict}"


def source_lines(sources: Sequence[Source], style: Style) -> list[str]:
    """One line a log that was read: format, points, and what was skipped."""
    lines = []
    for source in sources:
        text = f"{source.path} ({source.format}): {plural(source.points, 'point')} in {source.series} series"
        lines += wrapped(text + _skipped_text(source), style, rest="    ")
    return [style.paint(line, "dim") for line in lines]


def _read_lines(sources: Sequence[Source], style: Style) -> list[str]:
    """Which logs a run was read from, the damaged ones first, in as few lines as possible."""
    ranked = sorted(sources, key=lambda source: not source.skipped_count)
    shown = [f"{source.path} ({source.format}{_skipped_text(source)})" for source in ranked[:_MAX_SOURCES]]
    left = len(ranked) - len(shown)
    text = "Read: " + ", ".join(shown) + (f", and {plural(left, 'more log')}" if left else "")
    return [style.paint(line, "dim") for line in wrapped(text, style, "", "  ")] if shown else []


def _skipped_text(source: Source) -> str:
    count = max(source.skipped_count, len(source.skipped))
    if not count:
        return ""
    shown = "; ".join(_skipped(skipped) for skipped in source.skipped[:_MAX_SKIPPED])
    left = count - min(len(source.skipped), _MAX_SKIPPED)
    return f"; skipped {count}: {shown}" + (f"; and {left} more" if left > 0 else "")


def _skipped(skipped: Skipped) -> str:
    if skipped.line is not None:
        return f"line {skipped.line} {skipped.reason}"
    return skipped.reason if skipped.offset is None else f"byte {skipped.offset} {skipped.reason}"


def _failure_lines(failure: Failure, style: Style) -> list[str]:
    path, message = style.paint(escape(failure.path), "bold"), escape(failure_message(failure))
    lines = [f"{path}: {style.paint('error', 'red')}: {message}"]
    return lines + (wrapped(failure.hint, style) if failure.hint else [])
