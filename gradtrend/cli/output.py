"""Where a report goes: a terminal, a pipe, or a file."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import click

from gradtrend.errors import ConfigError
from gradtrend.model.report import Failure
from gradtrend.report import Style, escape, failure_message

_PIPE_WIDTH = 88  # where no terminal says otherwise; fits CI logs and mails
_MIN_WIDTH, _MAX_WIDTH = 60, 100  # narrower breaks the curves, wider is hard to read
_PROBE = "▁█✕…"


def stdout_style() -> Style:
    """What standard output can show: colour on a terminal unless NO_COLOR is set, Unicode where it can be encoded."""
    if sys.stdout is None:  # closed by whoever started this; `emit` says so
        return Style()
    terminal = sys.stdout.isatty()
    columns = shutil.get_terminal_size((_PIPE_WIDTH, 24)).columns if terminal else _PIPE_WIDTH
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    try:
        _PROBE.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        unicode = False
    else:
        unicode = True
    return Style(colour, unicode, min(_MAX_WIDTH, max(_MIN_WIDTH, columns)))


def emit(text: str | bytes) -> None:
    """Write to standard output. A reader that has closed the pipe (`| head`) is no error.

    Raises `ConfigError` where it cannot be written (closed, or a full disk), and for bytes on a terminal.
    """
    if sys.stdout is None:
        raise ConfigError("standard output is closed")
    if isinstance(text, bytes) and sys.stdout.isatty():
        raise ConfigError("a picture is not for a terminal", "Name a file with -o, or pipe it.")
    encoding = sys.stdout.encoding or "utf-8"
    try:
        if isinstance(text, bytes):
            sys.stdout.buffer.write(text)
        else:
            sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except OSError as error:
        _let_go(sys.stdout)
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
        _let_go(sys.stderr)


def _let_go(stream: TextIO) -> None:
    """Point a stream that cannot be written at nothing: the interpreter flushes it once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def check_writable(target: Path) -> None:
    """Raise `ConfigError` if a report cannot be written to `target`, before any work is done."""
    try:
        if target.is_dir():
            raise ConfigError(f"-o {target}: is a folder", "Name a file in it.")
        if _is_special(target):
            return
        with tempfile.TemporaryFile(dir=target.resolve().parent):
            pass
    except OSError as error:
        raise _unwritable(target, error) from None


def write_whole(target: Path, text: str | bytes) -> None:
    """Write `target` at once: a reader sees the old file or the new one, never a part.

    A device or pipe is written to as it is. Raises `ConfigError`.
    """
    content = text.encode("utf-8") if isinstance(text, str) else text
    try:
        if _is_special(target):
            target.write_bytes(content)
        else:
            _replace(target.resolve(), content)
    except BrokenPipeError:  # `-o /dev/stdout | head`, no error there either
        return
    except OSError as error:
        raise _unwritable(target, error) from None


def _replace(target: Path, content: bytes) -> None:
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    current = os.umask(0)  # the only way to read it is to set it
    os.umask(current)
    return current


def _is_special(target: Path) -> bool:
    return target.exists() and not target.is_file()


def _unwritable(target: Path, error: OSError) -> ConfigError:
    return ConfigError(f"-o {target}: cannot be written ({error.strerror or error})")
