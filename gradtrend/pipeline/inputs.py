"""What a call reads is not what it writes: a report must not replace the log that it is of."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gradtrend.errors import ConfigError
from gradtrend.ingest import SQLITE_COMPANIONS, RunFiles, is_settings_file, shown_address
from gradtrend.model.report import Failure

# What lies beside logs and is no report: settings, databases, weights and captures.
_OF_RUNS = re.compile(r"\.(?:ya?ml|toml|cfg|ini|db|sqlite3?|pt|pth|ckpt|safetensors|np[yz]|h5|wandb)$", re.IGNORECASE)
_ANOTHER = "Name another file for the report."


def told(path: str) -> str:
    """A path that was given as people may be told it: an address without what is secret in it."""
    return shown_address(path)


def logs_in(jobs: Sequence[RunFiles | Failure]) -> list[Path]:
    """The logs that will be read for these."""
    return [log.path for job in jobs if isinstance(job, RunFiles) for log in job.logs]


def check_no_input(
    output: Path, paths: Sequence[str], read: Sequence[Path], rules: Path | Sequence[Path] | None
) -> None:
    """Raise `ConfigError` if a report written to `output` would replace what is read, by whatever name, link or hard
    link: one of the `paths` that were given, of the logs or captures `read` there (a folder among them is one store), a
    file that belongs to them, or a rule file.
    """
    try:
        status = output.stat()
    except OSError:  # there is nothing to be lost
        return
    if not stat.S_ISREG(status.st_mode):
        return
    if any(_is_same(file, status) for one in (*map(Path, paths), *read) for file in _with_companions(one)):
        raise ConfigError(f"-o {output}: is what is to be read", _ANOTHER)
    if "-" in paths and _is_standard_input(status):
        raise ConfigError(f"-o {output}: is what is to be read, on standard input", _ANOTHER)
    real = _real(output)
    stores = {_real(one) for one in read if one.is_dir()}
    runs = {_real(one if one.is_dir() else one.parent) for one in (*map(Path, paths), *read)}
    of_run = _OF_RUNS.search(real.name) or is_settings_file(real)
    if stores & {*real.parents} or (of_run and runs & {*real.parents}):
        raise ConfigError(f"-o {output}: is a file of a run", _ANOTHER)
    folders = [rules] if isinstance(rules, Path) else rules or ()
    if real.suffix == ".toml" and any(_real(folder) in real.parents for folder in folders):
        raise ConfigError(f"-o {output}: is a rule file", _ANOTHER)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _with_companions(file: Path) -> Iterator[Path]:
    yield file
    if file.name:
        yield from (file.with_name(file.name + ending) for ending in SQLITE_COMPANIONS)


def _is_same(one: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(one.stat(), status)
    except (OSError, ValueError):  # gone, an address, or no name that a file can have
        return False


def _is_standard_input(status: os.stat_result) -> bool:
    if sys.stdin is None:
        return False
    try:
        return os.path.samestat(os.fstat(sys.stdin.fileno()), status)
    except (OSError, ValueError):  # closed, or replaced
        return False
