"""The files below a folder as they are at one moment, without a look into any: whether runs have changed since."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from gradtrend.ingest.limits import DEEPEST_FOLDER
from gradtrend.ingest.runs.finding.run_files import RunFiles
from gradtrend.ingest.runs.finding.tree import is_never_log, is_skipped_folder

# Never logs themselves, and yet what a report says may hang on them.
_SETTINGS = re.compile(r"\.(?:ya?ml|toml|ini|cfg)$", re.IGNORECASE)
_HYDRA, _DEBUG = ".hydra", "debug"


class State(NamedTuple):
    """How a file is: its size, its time of modification in nanoseconds, and who may read it."""

    size: int
    modified: int
    mode: int


UNREADABLE = State(-1, 0, 0)  # what stands for a folder that cannot be looked into


@dataclass(frozen=True, slots=True)
class Listing:
    """The files below a folder on which reports of its runs may hang, by their paths, and a digest of all of them."""

    files: dict[str, State]
    digest: str


def listing_of(path: str, leave_out: frozenset[str] = frozenset()) -> Listing | None:
    """The files below a folder, or the one file with what belongs to it; `leave_out` are absolute paths of others.

    None for an address or a pipe, of which nothing is known without reading, and for what is not there.
    """
    if os.path.isdir(path):
        found = dict(sorted(_below(path, leave_out)))
    elif os.path.isfile(path):
        found = {name: _state(os.stat(name)) for name in _with_companions(path)}
    else:
        return None
    return Listing(found, _digest(found.items()))


def signatures(listing: Listing, shares: Sequence[RunFiles]) -> list[str]:
    """For each share a digest of the files that its reports hang on: those nearest to its folder, and its logs. Of runs
    of one store those are all that lie there, or where folders of it are named by the ids of runs, those of its own.
    """
    folders = {str(share.folder) for share in shares}
    of_folder: dict[str, list[str]] = defaultdict(list)
    for file in listing.files:
        of_folder[_nearest(file, folders)].append(file)
    return [_digest(_states(listing, share, of_folder[str(share.folder)])) for share in shares]


def _states(listing: Listing, share: RunFiles, near: Sequence[str]) -> list[tuple[str, State]]:
    logs = [str(log.path) for log in share.logs]
    stored = {run.id for log in share.logs for run in log.runs} if share.stored else set()
    own = [file for file in near if stored & set(file.split(os.sep))] if stored else []
    files = {*(own or near), *(name for log in logs for name in (log, *_companions(log)))}
    return sorted((file, listing.files[file]) for file in files if file in listing.files)


def _nearest(file: str, folders: set[str]) -> str:
    """The innermost of the folders in which a file lies; empty where it lies in none."""
    place = os.path.dirname(file)
    while place and place not in folders:
        above = os.path.dirname(place)
        if above == place:
            return ""
        place = above
    return place


def _digest(states: Iterable[tuple[str, State]]) -> str:
    text = "\n".join(f"{file}\0{state.size}\0{state.modified}\0{state.mode}" for file, state in states)
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _companions(file: str) -> list[str]:
    """The files that a database has beside it while it is written to, which come to be part of it."""
    return [file + ending for ending in ("-wal", "-journal")]


def _with_companions(file: str) -> Iterator[str]:
    yield from (name for name in (file, *_companions(file)) if os.path.exists(name))


def _state(status: os.stat_result) -> State:
    return State(status.st_size, status.st_mtime_ns, status.st_mode)


def _below(root: str, leave_out: frozenset[str]) -> Iterator[tuple[str, State]]:
    """Each file below a folder that matters. As when logs are looked for: links are followed, nothing is seen twice."""
    seen: set[tuple[int, int]] = set()
    folders = [(str(Path(root)), 0)]
    while folders:
        folder, depth = folders.pop()
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in seen or depth > DEEPEST_FOLDER:
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                inside = list(entries)
        except OSError:
            yield folder, UNREADABLE
            continue
        in_debug = _DEBUG in folder.split(os.sep)
        for entry in inside:
            if _is_folder(entry):
                if entry.name == _HYDRA or not is_skipped_folder(entry.name):
                    folders.append((_joined(folder, entry.name), depth + 1))
            elif (in_debug or _matters(entry.name)) and (state := _of_file(entry)) is not None:
                path = _joined(folder, entry.name)
                if not leave_out or os.path.abspath(path) not in leave_out:
                    yield path, state


def _joined(folder: str, name: str) -> str:
    return name if folder == "." else os.path.join(folder, name)


def _matters(name: str) -> bool:
    return not is_never_log(name) or _SETTINGS.search(name) is not None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _of_file(entry: os.DirEntry[str]) -> State | None:
    try:
        return _state(entry.stat())
    except OSError:  # gone, or a link to nothing
        return None
