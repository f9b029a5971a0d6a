"""A path -> its logs, in shares that are read together: each is one run, or several that may have to be told apart.

What a run is, is decided by what the logs hold (`evidence`). That takes all logs of a tree in one hand, which costs
nothing where they are read in about a second; of larger trees those are read together whose places belong together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.formats import SOURCES
from gradtrend.ingest.runs.places import home_of, is_container, names, natural
from gradtrend.ingest.runs.tree import Found, LogFile, PassedOver, adapter_for, adapter_without_head, found_below

# Up to here a tree is read by one process anyway: others take about a second to start (`pipeline/parallel.py`).
_TOGETHER_FILES = 150
_TOGETHER_BYTES = 40_000_000

_NUMBERED = re.compile(r"^(.+)#\d+$", re.DOTALL)  # a run by its number in a file or folder


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Logs to be read together: of one run, or of several that lie close together.

    `name` is the path as given, joined with the folder that holds them all; `with_debug` are the folders that may hold
    captures, `passed_over` what was not read there. `is_stream` says that its log can be read once, and by this process
    alone; `only` is the name of the one run that was asked for (`train.log#2`).
    """

    name: str
    folder: Path
    logs: tuple[LogFile, ...]
    is_stream: bool = False
    only: str | None = None
    with_debug: tuple[Path, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()


def find_runs(path: str, source: str = "auto") -> tuple[RunFiles, ...]:
    """The shares of the logs at a path, at least one. Raises InputError for a missing or unreadable path."""
    if not path:  # and not the current folder, which Path makes of it
        raise InputError("an empty path", "Give a run folder or a log; is a variable of the shell not set?")
    root = Path(path)
    if path == "-":
        return (_stream(path, root, source),)
    if "://" in path:
        return (_at_address(path, root, source),)
    try:
        if not root.exists():
            numbered = _NUMBERED.match(path)
            if numbered and Path(numbered[1]).exists():
                return tuple(replace(files, only=path) for files in find_runs(numbered[1], source))
            raise InputError(f"{path}: no such file or folder")
        if not root.is_dir():
            return (_single(path, root, source),)
        adapter = adapter_without_head(root, source)
        if adapter is not None:
            return (RunFiles(path, root, (LogFile(root, adapter),)),)
        found = found_below(root, source)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", "Check the permissions of the path.") from error
    return _shares(path, root, found)


def _stream(path: str, pipe: Path, source: str) -> RunFiles:
    from gradtrend.ingest.runs import standard_input  # loaded for a pipe alone, as few calls have one

    return RunFiles(path, pipe, (LogFile(pipe, standard_input.adapter(source, pipe)),), is_stream=True)


def _at_address(path: str, root: Path, source: str) -> RunFiles:
    adapter = adapter_without_head(root, source)
    if adapter is None:
        raise InputError(
            f"{path}: not an address that gradtrend can read",
            "Give http(s)://host:port of an MLflow tracking server, or the path of a log.",
        )
    return RunFiles(path, root, (LogFile(root, adapter),))


def _single(path: str, file: Path, source: str) -> RunFiles:
    if file.is_fifo():
        return _stream(path, file, source)
    if not file.is_file():
        raise InputError(f"{path}: neither a file nor a folder", "Give a log, or pipe one into `gradtrend analyze -`.")
    if file.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty", "The run may not have flushed its log yet.")
    adapter = adapter_for(file, source)
    if adapter is None:
        names = ", ".join(name for name in SOURCES if name != "auto")
        raise InputError(
            f"{path}: not a log that gradtrend knows", f"Known formats: {names}; --source names one outright."
        )
    return RunFiles(path, file.parent, (LogFile(file, adapter),))


def _shares(path: str, root: Path, found: Found) -> tuple[RunFiles, ...]:
    """The logs of a tree in shares, in the order of their places."""
    if _is_small(found.logs):
        return (_share(path, root, root, found.logs, found.with_debug, found.passed_over),)
    homes = _homes(root, found.logs)
    logs: dict[Path, list[LogFile]] = {}
    for log, home in zip(found.logs, homes, strict=True):
        logs.setdefault(home, []).append(log)
    debug: dict[Path, list[Path]] = {}
    for folder in found.with_debug:
        debug.setdefault(_nearest(folder, logs, root), []).append(folder)
    passed: dict[Path, list[PassedOver]] = {}
    for one in found.passed_over:
        passed.setdefault(_nearest(one.path, logs, root), []).append(one)
    places = sorted({*logs, *debug, *passed}, key=lambda place: natural(str(place)))
    return tuple(
        _share(path, root, place, logs.get(place, ()), debug.get(place, ()), passed.get(place, ())) for place in places
    )


def _is_small(logs: Sequence[LogFile]) -> bool:
    if len(logs) > _TOGETHER_FILES:
        return False
    size = 0
    for log in logs:
        try:
            size += log.path.stat().st_size
        except OSError:  # gone since
            continue
    return size <= _TOGETHER_BYTES


def _homes(root: Path, logs: Sequence[LogFile]) -> list[Path]:
    """For each log the folder by which it is read together with others."""
    folders = {log.path.parent for log in logs}
    homes = [_home(root, log, folders) for log in logs]
    named: dict[Path, list[Path]] = {}  # the runs' folders by the folder in which they lie
    for home in {*homes}:
        named.setdefault(home.parent, []).append(home)
    return [_named_home(log, home, named.get(home, ())) for log, home in zip(logs, homes, strict=True)]


def _home(root: Path, log: LogFile, folders: set[Path]) -> Path:
    """The outermost folder with logs below which a logger's own folders lead to this log, else what its name says."""
    folder = log.path.parent
    steps = [folder, *folder.parents]
    for inner, outer in zip(reversed(steps[:-1]), reversed(steps[1:]), strict=True):
        if (outer == root or root in outer.parents) and outer in folders and is_container(inner.name):
            return home_of(outer, root)
    return home_of(folder, root, log.adapter.folder_a_series)


def _named_home(log: LogFile, home: Path, below: Iterable[Path]) -> Path:
    """The one run's folder that a loose log names, `exp1/` for `train_exp1.log`; else its own."""
    if log.path.parent != home:
        return home
    fits = [folder for folder in below if names(log.path, folder)]
    return fits[0] if len(fits) == 1 else home


def _nearest(path: Path, homes: Iterable[Path], root: Path) -> Path:
    known = set(homes)
    return next((place for place in (path, *path.parents) if place in known), path if path.is_dir() else root)


def _share(
    path: str,
    root: Path,
    folder: Path,
    logs: Iterable[LogFile],
    with_debug: Iterable[Path],
    passed_over: Iterable[PassedOver],
) -> RunFiles:
    ordered = tuple(sorted(logs, key=lambda log: natural(str(log.path))))
    return RunFiles(
        joined(path, root, folder), folder, ordered, with_debug=tuple(with_debug), passed_over=tuple(passed_over)
    )


def joined(path: str, root: Path, below: Path) -> str:
    """The path as given, joined with what leads from it to a place below."""
    relative = below.relative_to(root)
    return path if relative == Path() else os.path.join(path, relative)  # noqa: PTH118  keeps the path as given
