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
from gradtrend.report.text.sparkline import fit, sparkline
from gradtrend.report.text.why import next_lines, why_lines
from gradtrend.report.wording.escape import escape
from gradtrend.report.wording.failures import failure_message
from gradtrend.report.wording.numbers import plural, share
from gradtrend.report.wording.style import Style
from gradtrend.report.wording.subject import deciding_series, run_title

_LOOKS = {
    Verdict.EXPLODING: "red",
    Verdict.NAN_COLLAPSE: "red",
    Verdict.DIVERGING: "red",
    Verdict.VANISHING: "red",
    Verdict.WARMUP_SPIKE: "yellow",
    Verdict.STABLE: "green",
    Verdict.UNDETERMINED: "yellow",
}
_SO_FAR: dict[SoFar | None, str] = {
    SoFar.HEALTHY: "; so far it looks healthy",
    SoFar.SUSPICIOUS: "; so far it looks suspicious",
}
_MAX_SKIPPED = 3
_MAX_SOURCES = 5
_SHORT_CURVE = 24  # columns of the sparkline beside a run that needs no block


def render_text(report: Report, style: Style) -> str:
    """One block a run, one a failure, and a closing line where there are several."""
    several = len(report.runs) + len(report.failures) > 1
    blocks = [_block(run, style, several) for run in report.runs]
    blocks += [_failure_lines(failure, style) for failure in report.failures]
    if several and style.summary:
        blocks.append([summary(report)])
    lines: list[str] = []
    for before, block in zip([[], *blocks], blocks, strict=False):
        lines += [""] if before and (len(before) > 1 or len(block) > 1 or block is blocks[-1]) else []
        lines += block
    return "".join(f"{line}\n" for line in lines)


def summary(report: Report) -> str:
    """`4 runs: 1 exploding, 3 stable; 1 error, 2 warnings; 1 path could not be read`."""
    verdicts = Counter(run.verdict for run in report.runs)
    severities = Counter(finding.severity for run in report.runs for finding in run.findings)
    parts = []
    if report.runs:
        counted = ", ".join(f"{verdicts[v]} {v}" for v in Verdict if verdicts[v])
        parts.append(f"{plural(len(report.runs), 'run')}: {counted}")
    found = [plural(severities[s], s.value) for s in (Severity.ERROR, Severity.WARNING) if severities[s]]
    if found:
        parts.append(", ".join(found))
    if report.failures:
        parts.append(f"{plural(len(report.failures), 'path')} could not be read")
    return "; ".join(parts)


def _block(run: RunReport, style: Style, several: bool) -> list[str]:
    if several and run.verdict is Verdict.STABLE and all(f.severity is Severity.INFO for f in run.findings):
        return [_one_line(run, style)]
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
    verdict = style.paint(run.verdict.value, "bold", _LOOKS[run.verdict])
    if run.verdict is Verdict.UNDETERMINED:
        verdict += f" (could not be judged{_SO_FAR.get(run.so_far, '')})"
    elif run.confidence is not None:
        verdict += f" (confidence {share(run.confidence)})"
    return f"{style.paint(escape(run_title(run.run, run.name)), 'bold')}: {verdict}"


def _one_line(run: RunReport, style: Style) -> str:
    norm = deciding_series(run)
    curve = "" if norm is None else "  " + sparkline(fit(norm.sketch, _SHORT_CURVE), style)
    notes = f", {plural(len(run.findings), 'note')}" if run.findings else ""
    return f"{_headline(run, style)}{notes}{curve}".rstrip()


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
