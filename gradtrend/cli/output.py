"""What is said on standard output and standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

import click

from gradtrend.cli.stream import write_bytes, write_text
from gradtrend.errors import ConfigError
from gradtrend.model.report import Failure
from gradtrend.report import Style, escape, failure_message

_PIPE_WIDTH = 88  # where no terminal says otherwise; fits CI logs and mails
_MIN_WIDTH, _MAX_WIDTH = 60, 100  # narrower breaks the curves, wider is hard to read
_PROBE = "▁█✕…"


def stdout_style(color: str = "auto") -> Style:
    """What standard output can show: colour as `color` says (auto, always, never), Unicode where it can be encoded,
    tables cut to a terminal, and to COLUMNS wherever that is set.
    """
    if sys.stdout is None:  # closed by whoever started this; `emit` says so
        return Style()
    terminal = sys.stdout.isatty()
    size = _size(sys.stdout) if terminal else None
    columns = _columns_said() or (size.columns if size else None)
    try:
        _PROBE.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        unicode = False
    else:
        unicode = True
    return Style(
        _in_colour(color, terminal),
        unicode,
        min(_MAX_WIDTH, max(_MIN_WIDTH, columns or _PIPE_WIDTH)),
        columns=columns,
        rows=size.lines if size else None,
    )


def _size(terminal: TextIO) -> os.terminal_size | None:
    """Not as `shutil` has it: that asks the first standard output, which `with_buffers` may have replaced."""
    try:
        size = os.get_terminal_size(terminal.fileno())
    except (OSError, ValueError):
        return None
    return size if size.columns and size.lines else None  # 0 of a terminal that does not know


def _columns_said() -> int | None:
    said = os.environ.get("COLUMNS", "")
    return int(said) if said.isascii() and said.isdigit() and int(said) else None


def _in_colour(color: str, terminal: bool) -> bool:
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return terminal and os.environ.get("TERM") != "dumb"


def emit(text: str | bytes) -> None:
    """Write to standard output; bytes, which are a picture, to a pipe or file alone. A reader that has closed the pipe
    (`| head`) is no error.

    Raises `ConfigError` where it cannot be written (closed, or a full disk).
    """
    if sys.stdout is None:
        raise ConfigError("standard output is closed")
    if isinstance(text, bytes) and sys.stdout.isatty():
        raise ConfigError("a picture is not for a terminal", "Name a file with -o.")
    try:
        if isinstance(text, bytes):
            write_bytes(sys.stdout, text)
        else:
            write_text(sys.stdout, text)
    except OSError as error:
        let_go(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            raise ConfigError(f"standard output cannot be written ({error.strerror or error})") from None


def complain(message: str, hint: str | None = None) -> None:
    """One line on standard error, and the hint on the next."""
    tell(f"gradtrend: {message}" + (f"\n  {hint}" if hint else ""))


def announce(text: str) -> None:
    """Say on standard error what is about to be done."""
    tell(f"gradtrend: {escape(text)}")


def tell_failures(failures: Iterable[Failure], debug: bool, shown: bool = False) -> None:
    """The failures of paths on standard error; `shown` where standard output has just shown them to a person.

    `debug`: with the tracebacks of bugs, which no report holds.
    """
    for failure in failures:
        if not shown:
            _complain_of(failure)
        if failure.bug and debug:
            tell(failure.bug)


def _complain_of(failure: Failure) -> None:
    complain(f"{escape(failure.path)}: {escape(failure_message(failure))}", failure.hint and escape(failure.hint))


def tell(text: str) -> None:
    """Write to standard error; where it cannot be written, nobody can be told, and the exit code has to do."""
    try:
        click.echo(text, err=True)
    except OSError:
        let_go(sys.stderr)


def let_go(stream: TextIO) -> None:
    """Point a stream that cannot be written at nothing: the interpreter flushes it once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
