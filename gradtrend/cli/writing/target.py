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

from gradtrend.errors import ConfigError
from gradtrend.pipeline.whole_file import PREFIX, encoded, replace_whole, write_all

WAIT_SECONDS = 5.0  # for somebody to read from a named pipe, as for one to write to it
_PAUSE_SECONDS = 0.02


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
        data = encoded(text)
        try:
            if self.pipe is not None:
                with os.fdopen(self.pipe, "wb", buffering=0) as pipe:
                    write_all(pipe, data)
            elif _is_special(self.path):
                with self.path.open("wb", buffering=0) as device:
                    write_all(device, data)
            else:
                replace_whole(_real(self.path), data)
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
        handle, name = tempfile.mkstemp(dir=real.parent, prefix=PREFIX)
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


def _real(path: Path) -> Path:
    """Where a report goes: a link stays one. (`Path.resolve` raises what is no OSError for links that are a circle.)"""
    return Path(os.path.realpath(path))


def _is_special(target: Path) -> bool:
    return target.exists() and not target.is_file()


def _unwritable(target: Path, error: OSError) -> ConfigError:
    return ConfigError(f"-o {target}: cannot be written ({error.strerror or error})")
