"""Where the report of a call goes, and in which format each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gradtrend.cli.output import emit
from gradtrend.cli.writing.job_summary import add_to_job_summary
from gradtrend.cli.writing.target import Target, prepared
from gradtrend.errors import ConfigError
from gradtrend.model.report import Report
from gradtrend.report import Style, format_of, known_suffixes, reporter

_STANDARD = Path("-")


@dataclass(frozen=True, slots=True)
class Output:
    """One report: its format, and its target; None is standard output."""

    format: str
    target: Target | None = None


def outputs_of(files: Sequence[Path], format_: str | None) -> tuple[Output, ...]:
    """Where a call writes to: standard output, or the files of `-o`, each in the format that its suffix asks for;
    `format_` decides where it is given and one is written, and for standard output.

    Raises `ConfigError` for a suffix that is not known, for files that are one, and where no report can be written.
    """
    if len(set(files)) < len(files):
        raise ConfigError("-o names one file twice", "A report would replace the other.")
    if format_ is not None and len(files) > 1 and _STANDARD not in files:
        raise ConfigError(f"--format {format_} and several -o: which is it for?", "Leave it out: suffixes decide.")
    formats = [_format(file, format_, len(files) == 1) for file in files]
    made = [Output(name, _target(file)) for file, name in zip(files, formats, strict=True)]
    return tuple(made) or (Output(format_ or "text"),)


def _target(file: Path) -> Target | None:
    return None if file == _STANDARD else prepared(file)


def _format(file: Path, format_: str | None, alone: bool) -> str:
    if file == _STANDARD or (alone and format_ is not None):
        return format_ or "text"
    if not file.suffix:  # a device, a pipe, a bare name
        return "text"
    found = format_of(file.name)
    if found is None:
        raise ConfigError(
            f"-o {file}: no format has the suffix {file.suffix}", f"Known: {known_suffixes()}; --format names one."
        )
    return found


def table_target(file: Path) -> Target:
    """Where a table is written to. Raises `ConfigError` for a suffix that no table has, and where it cannot be."""
    from gradtrend.pipeline.programs.tables import TABLE_SUFFIXES

    if file.suffix.lower() not in TABLE_SUFFIXES:
        known = ", ".join(TABLE_SUFFIXES)
        raise ConfigError(f"-o {file}: no table has the suffix {file.suffix!r}", f"Known: {known}.")
    return prepared(file)


def deliver(report: Report, outputs: Sequence[Output], style: Style, streamed: bool = False) -> None:
    """Write each report; and on standard output, where no report goes there, the line that sums it up.

    `style` is that of standard output; of runs whose rows were `streamed` there the text repeats those to look at.
    """
    from gradtrend.report.text.report import render_text, short_summary

    plain = Style(verbose=style.verbose, summary=style.summary)
    for output in outputs:
        if output.target is not None:
            output.target.write(reporter(output.format)(report, plain))
    shown = [output for output in outputs if output.target is None or output.target.is_standard_output]
    for output in shown:
        if output.target is None:
            text = render_text(report, style, streamed) if streamed else reporter(output.format)(report, style)
            _emit_if_any(text)
    if any(output.format == "github" for output in outputs):
        add_to_job_summary(report)
    if not shown and style.summary:
        _emit_if_any(short_summary(report, replace(style, columns=None)))


def _emit_if_any(text: str | bytes) -> None:
    if text:
        emit(text)
