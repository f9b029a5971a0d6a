"""The logs under a folder, what may hold captures there, and what was passed over."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.files.regular import buffered
from gradtrend.ingest.files.streams import head_of
from gradtrend.ingest.formats import SOURCES, adapters_of
from gradtrend.ingest.limits import DEEPEST_FOLDER
from gradtrend.ingest.reading import HEAD_BYTES, Adapter, Reading, ReadOptions
from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns, chosen

# Never logs, and often many or large: weights, images, code, archives of data.
_NEVER = re.compile(
    r"\.(?:pt|pth|ckpt|safetensors|bin|np[yz]|h5|onnx|png|jpe?g|gif|svg|webp|mp4|wav|pyc?|ipynb|md|rst|html|css|js|so|tar"
    r"|zip|whl|parquet|arrow|tfrecord|lock|toml|ya?ml|pkl|pdf|sh|cfg|ini)$",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"(?!)")  # for a format of another package, which knows its own names
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "mlartifacts", "artifacts", "lost+found"})
# Files that hold a run's metrics and nothing else: one without a byte is worth a word. An empty stderr is not.
_LOG_NAME = re.compile(
    r"\.(?:csv|tsv|jsonl|ndjson|wandb|out)$|tfevents|^(?:train|training|console|output)\.log$|^trainer_state\.json$",
    re.IGNORECASE,
)
_OF_SETTINGS = re.compile(r"\.ya?ml$", re.IGNORECASE)  # no log, but read beside one
HYDRA, DEBUG = ".hydra", "debug"
_Place = tuple[int, int]  # device and inode


@dataclass(frozen=True, slots=True)
class LogFile:
    """A path (file, or folder such as `mlruns/`), the adapter that reads it, and of a store the runs that are meant:
    all that have metrics where there are none.
    """

    path: Path
    adapter: Adapter
    runs: tuple[StoredRun, ...] = ()

    def read(self, options: ReadOptions) -> Iterator[Reading]:
        """What it held; of a store what each of its runs held.

        Raises InputError where it, or one of its runs, cannot be read, behind what can be.
        """
        if self.adapter.runs is None:
            yield from self.adapter.read(self.path, options)
            return
        errors: list[InputError] = []
        for run in self.runs or chosen(self.adapter.runs(self.path, WantedRuns()), WantedRuns(), str(self.path)):
            try:
                yield from self.adapter.read(self.path, replace(options, run=run))
            except InputError as error:
                errors.append(error)
        if errors:
            raise errors[0]


@dataclass(frozen=True, slots=True)
class PassedOver:
    """What was not read below a folder, and why; `unread` says that a run may lie there that nobody has seen,
    `passing` that it lies in this moment, not in what was to be read.
    """

    path: Path
    reason: str
    unread: bool = False
    passing: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """The logs below a folder, the folders in it that have a `debug/`, and what was passed over."""

    logs: tuple[LogFile, ...]
    with_debug: tuple[Path, ...]
    passed_over: tuple[PassedOver, ...]


def is_never_log(name: str) -> bool:
    """Whether a file's name says that it is none: weights, images, code."""
    return _NEVER.search(name) is not None


def is_skipped_folder(name: str) -> bool:
    """Whether a folder is never entered: hidden ones, packages, artifacts."""
    return name.startswith(".") or name in _SKIPPED_FOLDERS


def is_left_out(path: str, is_link: bool, leave_out: frozenset[str]) -> bool:
    """Whether a file is one of `leave_out`, real paths. Few have such a name: only those are resolved."""
    if not leave_out or not (is_link or path.endswith(_names_of(leave_out))):
        return False
    return os.path.realpath(path) in leave_out


@lru_cache(maxsize=1)
def _names_of(files: frozenset[str]) -> tuple[str, ...]:
    return tuple(map(os.path.basename, files))


def may_matter(source: str, key: str) -> bool:
    """Whether a walk would look at a file of a tree, by the names that lead to it: as a log, or for what lies beside
    logs: settings, captured steps.
    """
    *folders, name = key.split("/")
    if any(folder != HYDRA and is_skipped_folder(folder) for folder in folders):
        return False
    never = _NEVER if source in SOURCES else _NOTHING
    return DEBUG in folders or _OF_SETTINGS.search(name) is not None or not never.search(name)


def has_name_of_log(name: str) -> bool:
    """Whether a file's name is one that logs have, so that one which cannot be read is worth a word."""
    return _LOG_NAME.search(name) is not None


def adapter_for(file: Path, source: str = "auto", names: Sequence[str] = ()) -> Adapter | None:
    """The adapter that claims a file, by content and then by name; `source` names one outright. One that knows a metric
    of the file by its name in `names` comes before all.
    """
    adapters = adapters_of(source)
    if source != "auto":
        return next(adapter for adapter in adapters if adapter.name == source)
    return _first_to_claim(adapters, file, names)


def _first_to_claim(adapters: Sequence[Adapter], file: Path, names: Sequence[str]) -> Adapter | None:
    with buffered(file) as opened:
        head = head_of(opened, HEAD_BYTES)
    if names and (known := next((a for a in adapters if a.holds is not None and a.holds(file, head, names)), None)):
        return known
    return next((adapter for adapter in adapters if adapter.claims(file, head)), None)


def adapter_without_head(path: Path, source: str = "auto") -> Adapter | None:
    """The adapter that claims what has no first bytes: a folder that is one log (a store), an address."""
    return next((a for a in adapters_of(source) if source in ("auto", a.name) and _claims_folder(a, path)), None)


def _claims_folder(adapter: Adapter, path: Path) -> bool:
    try:
        return adapter.claims(path, b"")
    except OSError:  # something in it may not be looked at, which the walk will tell
        return False


@dataclass(frozen=True, slots=True)
class Known:
    """What an earlier walk found out of files, each by its path, size and time of modification in nanoseconds.

    `format_of` gives the name of a file's format, empty for no log, None where the file is new or has changed; `heard`
    is told of each that was looked into. `leave_out` are the real paths of what is nobody's log: what this call writes.
    """

    format_of: Callable[[str, int, int], str | None]
    heard: Callable[[str, int, int, str], None]
    leave_out: frozenset[str] = frozenset()


class _EnoughError(Exception):
    """As many logs were found as are wanted for now."""


class _Walk:
    """One walk through the folders under a path, to its end or until `most` logs are found.

    Nothing is entered or read twice: links are followed when all else has been seen, to what has not been.
    """

    def __init__(self, source: str, names: Sequence[str], most: int | None = None, known: Known | None = None) -> None:
        self._source = source
        self._most = most
        self._known = known
        self._names = names
        self._adapters = adapters_of(source)
        self._never = _NEVER if source in SOURCES else _NOTHING
        self._seen: set[_Place] = set()
        self._links: list[tuple[Path, int]] = []
        self.logs: list[LogFile] = []
        self.with_debug: list[Path] = []
        self.passed_over: list[PassedOver] = []

    def walk(self, root: Path) -> None:
        """Everything below a folder. Raises OSError where the folder itself cannot be read."""
        self._enter(root, 0)
        while self._links:
            link, depth = self._links.pop(0)
            self._take(link, depth)

    def _enter(self, folder: Path, depth: int) -> None:
        self._seen.add(_place(folder))
        with os.scandir(folder) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
        if any(entry.name == "debug" and entry.is_dir() for entry in entries):
            self.with_debug.append(folder)
        for entry in entries:
            if entry.is_symlink():
                self._links.append((folder / entry.name, depth))
            elif entry.is_dir() or not self._never.search(entry.name):
                self._take(folder / entry.name, depth)

    def _take(self, entry: Path, depth: int) -> None:
        if self._most is not None and len(self.logs) >= self._most:
            raise _EnoughError
        is_folder = False
        try:
            is_folder = entry.is_dir()
            if is_folder:
                self._folder(entry, depth + 1)
            else:
                self._file(entry)
        except OSError as error:  # what cannot be read hides nothing else
            if is_folder or _LOG_NAME.search(entry.name):
                self.passed_over.append(PassedOver(entry, error.strerror or str(error), unread=True))

    def _folder(self, folder: Path, depth: int) -> None:
        if is_skipped_folder(folder.name) or _place(folder) in self._seen:
            return
        if depth > DEEPEST_FOLDER:
            self.passed_over.append(PassedOver(folder, f"lies more than {DEEPEST_FOLDER} folders deep", unread=True))
            return
        adapter = adapter_without_head(folder, self._source)
        if adapter is None:
            self._enter(folder, depth)
        else:
            self._seen.add(_place(folder))
            self.logs.append(LogFile(folder, adapter))

    def _file(self, file: Path) -> None:
        if self._never.search(file.name):
            return
        if self._known is not None and is_left_out(str(file), file.is_symlink(), self._known.leave_out):
            return
        try:
            status = file.stat()
        except FileNotFoundError:
            if file.is_symlink() and _LOG_NAME.search(file.name):
                self.passed_over.append(PassedOver(file, "a link to nothing"))
            return
        if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) in self._seen:
            return
        if status.st_size == 0:
            if _LOG_NAME.search(file.name):
                self.passed_over.append(PassedOver(file, "empty"))
            return
        try:
            adapter = self._adapter_of(file, status)
        except PermissionError:  # known by its name, it is told when it is read
            adapter = next((a for a in self._adapters if a.claims(file, b"")), None)
            if adapter is None and _LOG_NAME.search(file.name):
                self.passed_over.append(PassedOver(file, "Permission denied", unread=True))
        if adapter is not None and self._source in ("auto", adapter.name):
            self._seen.add((status.st_dev, status.st_ino))
            self.logs.append(LogFile(file, adapter))

    def _adapter_of(self, file: Path, status: os.stat_result) -> Adapter | None:
        if self._known is None:
            return _first_to_claim(self._adapters, file, self._names)
        as_it_is = str(file), status.st_size, status.st_mtime_ns
        known = self._known.format_of(*as_it_is)
        if known is not None:
            return next((adapter for adapter in self._adapters if adapter.name == known), None)
        adapter = _first_to_claim(self._adapters, file, self._names)
        self._known.heard(*as_it_is, "" if adapter is None else adapter.name)
        return adapter


def _place(folder: Path) -> _Place:
    status = folder.stat()
    return status.st_dev, status.st_ino


def found_below(folder: Path, source: str, names: Sequence[str] = (), known: Known | None = None) -> Found:
    """What lies under a folder; logs of the format `source`, unless it is `auto`; `names` as `adapter_for` has it.

    Raises OSError where the folder itself cannot be read.
    """
    walk = _Walk(source, names, known=known)
    walk.walk(folder)
    return Found(tuple(walk.logs), tuple(walk.with_debug), tuple(walk.passed_over))


def first_below(folder: Path, source: str, names: Sequence[str], most: int) -> Found | None:
    """What lies under a folder as far as the first so many logs; None where there are no more.

    Raises OSError where the folder itself cannot be read.
    """
    walk = _Walk(source, names, most)
    try:
        walk.walk(folder)
    except _EnoughError:
        return Found(tuple(walk.logs), tuple(walk.with_debug), tuple(walk.passed_over))
    return None
