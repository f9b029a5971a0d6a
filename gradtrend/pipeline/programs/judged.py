"""A report as a program has it: with its texts, its files and the series that it was made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields
from html import escape
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradtrend.detect.judge import outlined
from gradtrend.errors import ConfigError, InputError
from gradtrend.model.finding import Finding
from gradtrend.model.report import Report, RunReport
from gradtrend.model.runlog import RunLog
from gradtrend.model.words import Severity, Verdict
from gradtrend.pipeline.programs.tables import series_frame
from gradtrend.pipeline.whole_file import encoded, replace_whole
from gradtrend.report import POINTS, REPORTERS, Style, format_of, known_suffixes, reporter

if TYPE_CHECKING:
    import polars as pl

_FRAME = '<iframe srcdoc="{}" style="width: 100%; height: 40em; border: 0"></iframe>'


@dataclass(frozen=True, slots=True, repr=False)
class JudgedRun(RunReport):
    """A `RunReport` that can be shown, saved, and asked for the series that it was made of."""

    log: Callable[[], RunLog] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.to_text().rstrip("\n")

    def _repr_html_(self) -> str:
        """The report in a notebook; a page of its own within it, so that neither changes how the other looks. As text
        where the log that the page's charts draw is not there any more: a notebook shows nothing of what is raised.
        """
        if "html" in REPORTERS:
            with suppress(InputError):
                return _FRAME.format(escape(str(self._as("html"))))
        return f"<pre>{escape(self.to_text())}</pre>"

    def to_text(self, *, verbose: bool = False) -> str:
        """The report that `gradtrend analyze` prints; `verbose` as its `-v`."""
        return str(self._as("text", Style(verbose=verbose)))

    def to_json(self) -> str:
        """The report that `gradtrend analyze --format json` prints: RFC 8259, described by its JSON Schema."""
        return str(self._as("json"))

    def to_dict(self) -> dict[str, Any]:
        """The JSON report as plain dicts, lists, numbers and strings; a non-finite number is None."""
        found: dict[str, Any] = json.loads(self.to_json())
        return found

    def save(self, path: str | PathLike[str]) -> None:
        """Write the report to a file, whole, in the format of its suffix: `.json`, `.txt` ...

        Raises `ConfigError` for a suffix that no format has, OSError where it cannot be written, `InputError`
        where a chart is to be drawn of a log that has to be read again and is not there any more.
        """
        format_ = format_of(fspath(path))
        if format_ is None:
            raise ConfigError(f"{fspath(path)}: no format has the suffix {Path(path).suffix!r}", known_suffixes())
        replace_whole(Path(path), encoded(self._as(format_)))

    def series_frame(self) -> pl.DataFrame:
        """All that the run logged, as a DataFrame of polars (`.to_pandas()`) with a row a value: metric, role, layer,
        step, value. Raises `InputError` where the log has to be read again and is not there any more.
        """
        if self.log is None:
            raise InputError(f"{self.run}: its log is not at hand")
        return series_frame(self.log())

    def _as(self, format_: str, style: Style | None = None) -> str | bytes:
        """The report in a format. What charts draw is taken from the log now: of many runs it would fill the memory."""
        write, points = reporter(format_), POINTS.get(format_, 0)
        run = outlined(self, self.log(), points) if points and self.log is not None else self
        return write(Report(_exit_code(self), (run,)), style or Style())


def judged(report: RunReport, log: Callable[[], RunLog]) -> JudgedRun:
    """The report with its log at hand."""
    return JudgedRun(**{one.name: getattr(report, one.name) for one in fields(report)}, log=log)


def _exit_code(run: RunReport) -> int:
    """What `gradtrend analyze` exits with for this run alone, without options."""
    if any(_is_error(finding) for finding in run.findings):
        return 1
    return 3 if run.verdict is Verdict.UNDETERMINED else 0


def _is_error(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR
