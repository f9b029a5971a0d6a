"""The file, or the pipe, that a report is written to (`-o`)."""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gradtrend.cli.stream import write_all
from gradtrend.errors import ConfigError

WAIT_SECONDS = 5.0  # for somebody to read from a named pipe, as for one to write to it
_PAUSE_SECONDS = 0.02
_PREFIX = ".gradtrend-"  # of the file that becomes the report: a name made of the report's could be too long


@dataclass(frozen=True, slots=True)
class Target:
    """A place that a report can be written to. `pipe` is the open end of a named pipe: its reader would take an end
    that was closed for the end of the report.
    """

    path: Path
    pipe: int | None = None

    def write(self, text: str | bytes) -> None:
        """Write at once: who reads a file sees the old one or the new one, never a part. A device or a pipe is written
        to as it is; a reader that leaves is no error. Raises `ConfigError`.
        """
        data = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
        try:
            if self.pipe is not None:
                with os.fdopen(self.pipe, "wb", buffering=0) as pipe:
                    write_all(pipe, data)
            elif _is_special(self.path):
                with self.path.open("wb", buffering=0) as device:
                    write_all(device, data)
            else:
                _replace(_real(self.path), data)
        except BrokenPipeError:  # `-o /dev/stdout | head`
            return
        except OSError as error:
            raise _unwritable(self.path, error) from None

    @property
    def is_standard_output(self) -> bool:
        """Whether it is where standard output goes by another name (`/dev/stdout`)."""
        try:
            return sys.stdout is not None and os.path.samestat(self.path.stat(), os.fstat(sys.stdout.fileno()))
        except (OSError, ValueError):  # there is none yet; or standard output is none of the system's
            return False


def prepared(path: Path) -> Target:
    """The target at a path. Raises `ConfigError` if no report can be written there, before any work is done.

    A named pipe is opened here, and waited for as long as `WAIT_SECONDS` until somebody reads from it.
    """
    try:
        if path.is_dir():
            raise ConfigError(f"-o {path}: is a folder", "Name a file in it.")
        real = _real(path)
        with suppress(FileNotFoundError):
            kind = path.stat().st_mode
            if stat.S_ISFIFO(kind):
                return Target(path, _opened_pipe(path))
            if not stat.S_ISREG(kind):
                return Target(path)
            _check_owner(path, real)
        handle, name = tempfile.mkstemp(dir=real.parent, prefix=_PREFIX)
        os.close(handle)
        Path(name).unlink()
    except OSError as error:
        raise _unwritable(path, error) from None
    return Target(path)


def _opened_pipe(path: Path) -> int:
    until = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        else:
            os.set_blocking(pipe, True)
            return pipe
        if time.monotonic() > until:
            raise ConfigError(f"-o {path}: nobody reads from this pipe", "Start its reader first.")
        time.sleep(_PAUSE_SECONDS)


def _check_owner(path: Path, real: Path) -> None:
    """In /tmp and its like nobody but its owner may replace a file."""
    if sys.platform == "win32" or not os.geteuid():
        return
    folder = real.parent.stat()
    if folder.st_mode & stat.S_ISVTX and os.geteuid() not in (folder.st_uid, real.stat().st_uid):
        raise ConfigError(f"-o {path}: belongs to somebody else", "Name another file.")


def _replace(target: Path, data: bytes) -> None:
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=_PREFIX)
    try:
        with os.fdopen(handle, "wb", buffering=0) as file:
            write_all(file, data)
            os.fsync(handle)  # a full disk or quota may be told only now, and the old report is still there
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _real(path: Path) -> Path:
    """Where a report goes: a link stays one. (`Path.resolve` raises what is no OSError for links that are a circle.)"""
    return Path(os.path.realpath(path))


def _umask() -> int:
    current = os.umask(0)  # the only way to read it is to set it
    os.umask(current)
    return current


def _is_special(target: Path) -> bool:
    return target.exists() and not target.is_file()


def _unwritable(target: Path, error: OSError) -> ConfigError:
    return ConfigError(f"-o {target}: cannot be written ({error.strerror or error})")
