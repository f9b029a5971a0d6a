"""What a call shows while it works: rows of runs as they are judged, and a bar on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from gradtrend.cli.output import emit
from gradtrend.model.report import Failure, RunReport
from gradtrend.report import Style

_SECONDS = 1.0  # of work, before anything is shown: less is not worth a word
_MANY = 50  # pieces of work: half a second of small runs
_CLEAR = "\r\x1b[K\x1b[?25h"  # the line of the bar, and the cursor that it hid


class Bar:
    """A progress bar on standard error, where that is a terminal."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._bar: Any = None
        self._said = False

    def announce(self, what: str) -> None:
        """Say what is done before anything can be counted."""
        if _is_terminal():
            click.echo(f"\r{what}", nl=False, err=True)
            self._said = True

    def show(self, done: int, count: int) -> None:
        """Show that so much is done, of so much."""
        if not _is_terminal():
            return
        if self._bar is None:
            self._bar = click.progressbar(length=count, file=sys.stderr, label=self._label, show_pos=True)
        self._bar.length = count
        self._bar.update(done - self._bar.pos)

    def clear(self) -> None:
        """Leave nothing of it on the screen."""
        if self._bar is not None or self._said:
            click.echo(_CLEAR, nl=False, err=True)


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


class Progress:
    """The runs of a call as they are judged, in that order, and what is shown of them.

    Rows where a `style` is given, where there are many, or on a terminal the work takes its time; `below` is the folder
    that they all lie in. `settle` makes of a run as judged the one to be shown.
    """

    def __init__(self, style: Style | None, below: str, settle: Callable[[RunReport], RunReport]) -> None:
        self.runs: list[RunReport] = []
        self.failures: list[Failure] = []
        self.streamed = False
        self.count: int | None = None
        self._style = style
        self._below = below
        self._settle = settle
        self._shown = 0
        self.done = 0
        self._began = time.monotonic()
        self._bar = Bar("Judging")

    def heard(self, runs: Sequence[RunReport], failures: Sequence[Failure], count: int | None) -> None:
        """Take what has been judged: one of `count` pieces of work, which is None before all are found."""
        self.runs += map(self._settle, runs)
        self.failures += failures
        self.count = count
        self.done += 1
        late = time.monotonic() - self._began > _SECONDS
        if self._style is not None and (self.streamed or self._is_long(self._style, late)):
            self._show_rows(self._style)
        if late and count is not None and count > 1:
            self._bar.show(self.done, count)

    def finish(self) -> None:
        """Show the rows that are left, and leave no bar behind."""
        if self._style is not None and self.streamed:
            self._show_rows(self._style)
        self._bar.clear()

    def _is_long(self, style: Style, late: bool) -> bool:
        """Whether somebody would wait. In a file nothing may depend on how fast a machine is."""
        if self.count is None or self.count > _MANY:
            return True
        return late and style.rows is not None and self.done < self.count

    def _show_rows(self, style: Style) -> None:
        from gradtrend.report.text.table import head_lines, row

        lines = [] if self.streamed else head_lines(self._below, style)
        lines += [row(run, self._below, style) for run in self.runs[self._shown :]]
        self._shown = len(self.runs)
        self.streamed = True
        self._bar.clear()
        emit("".join(f"{line}\n" for line in lines))


@contextmanager
def shown(progress: Progress) -> Iterator[Progress]:
    """Leave the screen as it should be, whatever ends the work."""
    try:
        yield progress
    finally:
        progress.finish()
