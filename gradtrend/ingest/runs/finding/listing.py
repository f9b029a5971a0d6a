"""The files below a folder as they are at one moment, without a look into any: whether runs have changed since."""

from __future__ import annotations

import os
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gradtrend.ingest.limits import DEEPEST_FOLDER
from gradtrend.ingest.runs.finding.run_files import RunFiles
from gradtrend.ingest.runs.finding.tree import DEBUG, HYDRA, is_left_out, is_never_log, is_skipped_folder
from gradtrend.ingest.settings.folder import is_settings_file

# Never logs themselves, and yet what a report says may hang on them.
_SETTINGS = re.compile(r"\.(?:ya?ml|toml|ini|cfg)$", re.IGNORECASE)


if TYPE_CHECKING:  # loaded where there is an address
    from gradtrend.ingest.remote.objects import Remote


class FileState(NamedTuple):
    """How a file is: its size, its time of modification in nanoseconds, and who may read it."""

    size: int
    modified: int
    mode: int


UNREADABLE = FileState(-1, 0, 0)  # what stands for a folder that cannot be looked into


@dataclass(frozen=True, slots=True)
class Listing:
    """The files below a folder on which reports of its runs may hang, by their paths, and a digest of all of them."""

    files: dict[str, FileState]
    digest: str


def listing_of(path: str, leave_out: frozenset[str] = frozenset()) -> Listing | None:
    """The files below a folder, or the one file with what belongs to it; `leave_out` are real paths of others.

    None for an address or a pipe, of which nothing is known without reading, and for what is not there.
    """
    if os.path.isdir(path):
        found = _Walk(path, leave_out).files
    elif os.path.isfile(path):
        found = {name: _state(os.stat(name)) for name in _with_companions(path)} | _beside(path, leave_out)
    else:
        return None
    return listing_from(found)


def listing_from(found: dict[str, FileState]) -> Listing:
    """The listing of files whose states are known."""
    return Listing(found, _digest(sorted(found.items())))


def signatures(listing: Listing | None, shares: Sequence[RunFiles]) -> list[str | None]:
    """For each share a digest of the files that its reports hang on: those nearest to its folder, and its logs. Of runs
    of one store those are all that lie there, or where folders of it are named by the ids of runs, those of its own.
    What is read together, and what else was found out of it, counts as well: it hangs on other files, too. Where there
    are no files it is what a server says of its runs with their list, and None where that is nothing.
    """
    if any(share.remote is not None for share in shares):
        return [None if share.remote is None else _of_objects(share, share.remote) for share in shares]
    if listing is None:
        return [_digest((), _made_of(share)) if _is_told(share) else None for share in shares]
    folders = {_text(share.folder) for share in shares}
    of_folder: dict[str, list[str]] = defaultdict(list)
    for file in listing.files:
        of_folder[_nearest(file, folders)].append(file)
    return [_digest(_states(listing, share, of_folder[_text(share.folder)]), _made_of(share)) for share in shares]


def _of_objects(share: RunFiles, remote: Remote) -> str:
    states = sorted((held.key, FileState(held.size, held.stamp, 0)) for held in remote.objects)
    return _digest(states, _made_of(share).replace(remote.root, remote.shown))


def _is_told(share: RunFiles) -> bool:
    return share.stored and share.error is None and all(run.state for log in share.logs for run in log.runs)


def _made_of(share: RunFiles) -> str:
    logs = [(str(log.path), log.adapter.name, log.runs) for log in share.logs]
    passed = [(str(one.path), one.reason) for one in share.passed_over]
    debug, error = [*map(str, share.with_debug)], None if share.error is None else share.error.message
    return repr((logs, passed, debug, error, share.only, share.alone, share.picked, share.notes))


def _text(folder: Path) -> str:
    """A folder as it stands ahead of the files in it."""
    return "" if folder == Path() else str(folder)


def _states(listing: Listing, share: RunFiles, near: Sequence[str]) -> list[tuple[str, FileState]]:
    logs = [str(log.path) for log in share.logs]
    stored = {run.id for log in share.logs for run in log.runs} if share.stored else set()
    own = [file for file in near if stored & set(file.split(os.sep))] if stored else []
    files = {*(own or near), *(name for log in logs for name in (log, *_companions(log)))}
    return sorted((file, listing.files[file]) for file in files if file in listing.files)


def _nearest(file: str, folders: set[str]) -> str:
    """The innermost of the folders in which a file lies; empty where it lies in none, and for the current one."""
    place = os.path.dirname(file)
    while place and place not in folders:
        above = os.path.dirname(place)
        if above == place:
            return ""
        place = above
    return place


def _digest(states: Iterable[tuple[str, FileState]], beside: str = "") -> str:
    text = beside + "\n".join(f"{file}\0{state.size}\0{state.modified}\0{state.mode}" for file, state in states)
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _companions(file: str) -> list[str]:
    """The files that a database has beside it while it is written to, which come to be part of it."""
    return [file + ending for ending in ("-wal", "-journal")]


def _with_companions(file: str) -> Iterator[str]:
    yield from (name for name in (file, *_companions(file)) if os.path.exists(name))


def _beside(file: str, leave_out: frozenset[str]) -> dict[str, FileState]:
    """What is read beside a log that is given by itself: its settings, those of Hydra, and what lies in `debug/`."""
    folder = os.path.dirname(file)
    debug = os.path.join(folder, DEBUG)
    found = _Walk(debug, leave_out).files if os.path.isdir(debug) else {}
    for place in (folder, os.path.join(folder, HYDRA)):
        with suppress(OSError), os.scandir(place or ".") as entries:
            for entry in entries:
                if is_settings_file(Path(place, entry.name)) and (state := _of_file(entry, leave_out)) is not None:
                    found[os.path.join(place, entry.name)] = state
    return found


def _state(status: os.stat_result) -> FileState:
    return FileState(status.st_size, status.st_mtime_ns, status.st_mode)


class _Walk:
    """The files below a folder that matter. As when logs are looked for, links are followed when all else has been
    seen, in the same order, and nothing is entered twice: what is reached by several paths has the same one there.
    """

    def __init__(self, root: str, leave_out: frozenset[str]) -> None:
        self.files: dict[str, FileState] = {}
        self._leave_out = leave_out
        self._seen: set[tuple[int, int]] = set()
        self._links: deque[tuple[str, int]] = deque()
        self._below_debug = DEBUG in os.path.realpath(root).split(os.sep)
        self._enter(str(Path(root)), 0)
        while self._links:
            self._enter(*self._links.popleft())

    def _enter(self, folder: str, depth: int) -> None:
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in self._seen or depth > DEEPEST_FOLDER:
                return
            self._seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                inside = sorted(entries, key=_name_of)
        except OSError:
            self.files[folder] = UNREADABLE
            return
        in_debug = self._below_debug or DEBUG in folder.split(os.sep)
        ahead = "" if folder == "." else os.path.join(folder, "")
        for entry in inside:
            name = entry.name
            if _is_folder(entry):
                self._meet(entry, ahead + name, depth + 1)
            elif (in_debug or _matters(name)) and (state := _of_file(entry, self._leave_out)) is not None:
                self.files[ahead + name] = state

    def _meet(self, entry: os.DirEntry[str], path: str, depth: int) -> None:
        if entry.name != HYDRA and is_skipped_folder(entry.name):
            return
        if entry.is_symlink():
            self._links.append((path, depth))
        else:
            self._enter(path, depth)


def _name_of(entry: os.DirEntry[str]) -> str:
    return entry.name


@lru_cache(maxsize=1000)  # most files have the names of a few
def _matters(name: str) -> bool:
    return not is_never_log(name) or _SETTINGS.search(name) is not None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _of_file(entry: os.DirEntry[str], leave_out: frozenset[str]) -> FileState | None:
    try:
        if is_left_out(entry.path, entry.is_symlink(), leave_out):
            return None
        return _state(entry.stat())
    except OSError:  # gone, or a link to nothing
        return None
