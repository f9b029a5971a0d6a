"""A path -> its logs, in shares that are read together: each is one run, or several that may have to be told apart.

What a run is, is decided by what the logs hold (`evidence`). That takes all logs of a tree in one hand, which costs
nothing where they are read in about a second; of larger trees those are read together whose places belong together.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gradtrend.errors import InputError
from gradtrend.ingest.formats import SOURCES, adapters_of
from gradtrend.ingest.reading.stored_runs import WantedRuns
from gradtrend.ingest.runs.finding.addresses import format_address, remote_place
from gradtrend.ingest.runs.finding.listing import FileState, Listing, listing_from
from gradtrend.ingest.runs.finding.places import home_of, is_container, natural, place_of
from gradtrend.ingest.runs.finding.places import names as names_folder
from gradtrend.ingest.runs.finding.run_files import RunFiles
from gradtrend.ingest.runs.finding.stores import each_stored_run
from gradtrend.ingest.runs.finding.tree import (
    Found,
    Known,
    LogFile,
    PassedOver,
    adapter_for,
    adapter_without_head,
    first_below,
    found_below,
    may_matter,
)
from gradtrend.temporary import new_folder

if TYPE_CHECKING:  # loaded where there is an address
    from gradtrend.ingest.remote.address import RemoteAddress

# Up to here a tree is read by one process anyway: others take about a second to start (`pipeline/parallel.py`).
_TOGETHER_FILES = 150
_TOGETHER_BYTES = 40_000_000
_FIRST_FILES = 10  # beyond those, of a tree that is told to be large: some runs, of which a few may not be whole

_ALL = WantedRuns()


def find_runs(
    path: str,
    source: str = "auto",
    wanted: WantedRuns = _ALL,
    names: Sequence[str] = (),
    known: Known | None = None,
    room: Path | None = None,
) -> tuple[RunFiles, ...]:
    """The shares of the logs at a path, at least one; a share for each wanted run of a store that lies alone. `names`
    are metrics that the user says are logged there: a table with such a column is a log, whatever else its header has.
    `known` is what was found out of the files there before. `room` is an empty folder for the mirror of a remote place,
    by itself one that lives as long as this process.

    Raises InputError for a missing or unreadable path, and for runs that are asked for and not there; of a remote place
    also MissingPackageError.
    """
    if not path:  # and not the current folder, which Path makes of it
        raise InputError("an empty path", "Give a run folder or a log; is a variable of the shell not set?")
    if (elsewhere := remote_place(path, source)) is not None:
        return _found_elsewhere(elsewhere, path, source, wanted, names, known, room or new_folder())
    address = format_address(path, source)
    place = path if address is None else address.place
    wanted = wanted if address is None else _narrowed(wanted, address.wanted)
    found = each_stored_run(_found(place, source, names, known), place, wanted, source)
    if address is None:
        return found
    if len(found) == 1 and address.wanted.ids:  # the address of a run's own page
        return (replace(found[0], name=path),)
    return tuple(replace(run, name=path + run.name.removeprefix(place)) for run in found)


def first_runs(path: str, source: str = "auto", names: Sequence[str] = ()) -> tuple[RunFiles, ...]:
    """The first shares of the logs of a large tree, for those who cannot wait for `find_runs`; none of a small one.

    They are what `find_runs` gives as far as can be told: what lies elsewhere in the tree may belong to them. Raises
    nothing: what cannot be read is told by `find_runs`.
    """
    root = Path(path)
    try:
        if path == "-" or not root.is_dir() or adapter_without_head(root, source) is not None:
            return ()
        found = first_below(root, source, names, _TOGETHER_FILES + _FIRST_FILES)
    except OSError:
        return ()
    if found is None:
        return ()
    unfinished = {found.logs[-1].path.parent, *found.logs[-1].path.parents}
    shares = _shares(path, root, found)
    return tuple(
        share
        for share in shares
        if share.logs and share.folder not in unfinished and all(log.adapter.runs is None for log in share.logs)
    )


def _found_elsewhere(
    address: RemoteAddress,
    path: str,
    source: str,
    wanted: WantedRuns,
    names: Sequence[str],
    known: Known | None,
    room: Path,
) -> tuple[RunFiles, ...]:
    """The shares of the logs at a remote place, found in its mirror."""
    from gradtrend.ingest.remote.mirror import mirrored
    from gradtrend.ingest.runs.finding import elsewhere

    known = Known(lambda *_: None, lambda *_: None) if known is None else known
    stores = {adapter.name for adapter in adapters_of(source) if adapter.runs is not None}
    is_known = partial(elsewhere.is_known, known, stores)
    matters = partial(may_matter, source)
    try:
        mirror, number = mirrored(address, matters, room, is_known), ""
    except InputError:
        outer = place_of(path)  # it may be one of several runs there
        if outer == path or (whole := remote_place(outer, source)) is None:
            raise
        mirror, number = mirrored(whole, matters, room, is_known), path.removeprefix(outer)
    here = f"{mirror.path}{number}"
    try:
        found = _found(here, source, names, elsewhere.known_in(mirror, known))
        elsewhere.tell_settings(mirror, known, found)
        with_missed = elsewhere.with_missed(found, mirror.root, mirror.missed)
        return elsewhere.shares_of(each_stored_run(with_missed, here, wanted, source), mirror)
    except InputError as error:
        raise elsewhere.told_error(error, mirror) from error


def listed_below(path: str, source: str = "auto") -> Listing | None:
    """What lies at a remote place, by the addresses of its objects; None for a path of this machine. Raises InputError
    as `find_runs`.
    """
    address = remote_place(path, source)
    if address is None:
        return None
    from gradtrend.ingest.remote.mirror import listed

    objects = listed(address, partial(may_matter, source))
    return listing_from({name: FileState(held.size, held.stamp, 0) for name, held in objects.items()})


def _narrowed(wanted: WantedRuns, by_address: WantedRuns) -> WantedRuns:
    return WantedRuns(wanted.ids or by_address.ids, wanted.experiment or by_address.experiment, wanted.newest)


def _found(path: str, source: str, names: Sequence[str], known: Known | None = None) -> tuple[RunFiles, ...]:
    """The shares of the logs at a path, stores as they are."""
    root = Path(path)
    if path == "-":
        return (_stream(path, root, source),)
    if "://" in path:
        return (_at_address(path, root, source),)
    try:
        if not root.exists():
            place = place_of(path)
            if Path(place).exists():
                return tuple(replace(files, only=path) for files in _found(place, source, names))
            raise InputError(f"{path}: no such file or folder")
        if not root.is_dir():
            return (_single(path, root, source, names),)
        adapter = adapter_without_head(root, source)
        if adapter is not None:
            return (RunFiles(path, root, (LogFile(root, adapter),)),)
        found = found_below(root, source, names, known)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", "Check the permissions of the path.") from error
    return _shares(path, root, found)


def _stream(path: str, pipe: Path, source: str) -> RunFiles:
    from gradtrend.ingest.runs.finding import standard_input  # loaded for a pipe alone, as few calls have one

    return RunFiles(path, pipe, (LogFile(pipe, standard_input.adapter(source, pipe)),), is_stream=True)


def _at_address(path: str, root: Path, source: str) -> RunFiles:
    adapter = adapter_without_head(root, source)
    if adapter is None:
        raise InputError(
            f"{path}: not an address that gradtrend can read",
            "Give http(s)://host:port of an MLflow tracking server, s3://, gs://, az:// or hf:// of logs, or a path.",
        )
    return RunFiles(path, root, (LogFile(root, adapter),))


def _single(path: str, file: Path, source: str, names: Sequence[str]) -> RunFiles:
    if file.is_fifo():
        return _stream(path, file, source)
    if not file.is_file():
        raise InputError(f"{path}: neither a file nor a folder", "Give a log, or pipe one into `gradtrend analyze -`.")
    if file.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty", "The run may not have flushed its log yet.")
    adapter = adapter_for(file, source, names)
    if adapter is None:
        known = ", ".join(name for name in SOURCES if name != "auto")
        raise InputError(
            f"{path}: not a log that gradtrend knows",
            f"Known formats: {known}; --source names one outright, --metric NAME the column of a table, and"
            " --columns step,loss,grad_norm the columns of one without names.",
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
    fits = [folder for folder in below if names_folder(log.path, folder)]
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
