"""Shares of logs that lie in a remote place: what belongs to each, so that any machine can fetch and read it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.reading import SQLITE_COMPANIONS
from gradtrend.ingest.remote.mirror import Mirror, first_bytes, is_captured, is_settings
from gradtrend.ingest.remote.objects import Held, Missed, Remote
from gradtrend.ingest.runs.finding.run_files import RunFiles
from gradtrend.ingest.runs.finding.tree import Known, PassedOver, has_name_of_log


def is_known(known: Known, stores: Collection[str], address: str, held: Held) -> bool:
    """Whether the first bytes of an object say nothing new: of one of the `stores`, formats that have to list their
    runs, they always do.
    """
    format_ = known.format_of(address, held.size, held.stamp)
    return format_ is not None and format_ not in stores


def known_in(mirror: Mirror, known: Known) -> Known:
    """What is known of objects by their addresses, as a walk through their mirror asks for it."""

    def format_of(path: str, size: int, modified: int) -> str | None:
        held = _held(mirror, path)
        return None if held is None else known.format_of(mirror.shown_key(held), held.size, held.stamp)

    def heard(path: str, size: int, modified: int, format_: str) -> None:
        held = _held(mirror, path)
        if held is not None:
            known.heard(mirror.shown_key(held), held.size, held.stamp, format_)

    return Known(format_of, heard)


def tell_settings(mirror: Mirror, known: Known, found: Sequence[RunFiles]) -> None:
    """Settings beside logs are no logs, which no walk asks: so that their bytes are fetched with those of their run."""
    folders = {log.path for files in found for log in files.logs}
    for held in mirror.objects.values():
        if is_settings(held.key) and folders.isdisjoint((mirror.root / held.key).parents):
            known.heard(mirror.shown_key(held), held.size, held.stamp, "")


def _held(mirror: Mirror, path: str) -> Held | None:
    return mirror.objects.get(path.removeprefix(f"{mirror.root}/"))


def with_missed(found: Sequence[RunFiles], root: Path, missed: Sequence[Missed]) -> tuple[RunFiles, ...]:
    """What was found in a mirror, with what is not in it as passed over, by the share that lies nearest."""
    passed: dict[Path, list[PassedOver]] = {}
    folders = {files.folder for files in found}
    for one in missed:
        place = passed_over(root, one)
        home = next((folder for folder in place.path.parents if folder in folders), found[0].folder)
        passed.setdefault(home, []).append(place)
    told: set[Path] = set()
    shares: list[RunFiles] = []
    for files in found:
        more = passed.get(files.folder, []) if files.folder not in told else []
        told.add(files.folder)
        shares.append(replace(files, passed_over=(*files.passed_over, *more)))
    return tuple(shares)


def passed_over(root: Path, one: Missed) -> PassedOver:
    """An object that is not there to be read, as a file that was passed over."""
    unread = one.unread and has_name_of_log(one.key.rpartition("/")[2])
    return PassedOver(root / one.key.replace("\0", "?").strip("/"), one.reason, unread, one.passing)


def shares_of(found: Sequence[RunFiles], mirror: Mirror) -> tuple[RunFiles, ...]:
    """What was found in a mirror, with the names of its address, and with the objects that belong to each share."""
    folders = {files.folder for files in found}
    of_log = {log.path: files.folder for files in found for log in files.logs}
    ids = {run.id for files in found for log in files.logs for run in log.runs}
    by_folder: dict[Path, list[Held]] = {}
    for key, held in mirror.objects.items():
        home = _home(mirror.root / key, folders, of_log)
        if home is not None:
            by_folder.setdefault(home, []).append(held)
    return tuple(
        replace(
            _named(files, str(mirror.root), mirror.shown),
            remote=Remote(
                mirror.address,
                mirror.base,
                mirror.shown,
                str(mirror.root),
                mirror.inner,
                tuple(_needed(files, by_folder.get(files.folder, ()), mirror.root, ids)),
            ),
        )
        for files in found
    )


def _home(path: Path, folders: set[Path], of_log: Mapping[Path, Path]) -> Path | None:
    """The folder of the share to which a file belongs: by its log, by a log that is a folder, else by its place."""
    for ending in SQLITE_COMPANIONS:
        path = path.with_name(path.name.removesuffix(ending)) if path.name != ending else path
    return next(
        (of_log.get(place, place) for place in (path, *path.parents) if place in of_log or place in folders), None
    )


def _needed(files: RunFiles, objects: Sequence[Held], root: Path, ids: set[str]) -> Iterator[Held]:
    """The objects that a share's reading needs: its logs, and what is small, or captured, beside them. Two shares need
    none that has to be fetched: one would take it away from the other.
    """
    if files.error is not None:
        return
    has_debug = files.alone or not files.logs
    own = {run.id for log in files.logs for run in log.runs}
    others = ids - own if files.stored else set()
    logs = {log.path for log in files.logs}
    for held in objects:
        path = root / held.key
        parts = held.key.split("/")
        if others and any(part in others or part.rpartition("-")[2] in others for part in parts):
            continue
        names = {path.with_name(path.name.removesuffix(end)) for end in SQLITE_COMPANIONS if path.name != end}
        is_log = not logs.isdisjoint((path, *names, *path.parents))
        if is_log or first_bytes(held) == held.size or (has_debug and is_captured(held.key)):
            yield held


def _named(files: RunFiles, root: str, shown: str) -> RunFiles:
    """A share of a mirror with the names of its address."""
    error = files.error
    return replace(
        files,
        name=files.name.replace(root, shown),
        only=None if files.only is None else files.only.replace(root, shown),
        error=None if error is None else _told(error, root, shown),
        notes=tuple(
            replace(note, message=note.message.replace(root, shown), details=note.details.replace(root, shown))
            for note in files.notes
        ),
    )


def _told(error: InputError, root: str, shown: str) -> InputError:
    hint = None if error.hint is None else error.hint.replace(root, shown)
    return type(error)(error.message.replace(root, shown), hint)


def told_error(error: InputError, mirror: Mirror) -> InputError:
    """An error of what was found in a mirror, with its address."""
    return _told(error, str(mirror.root), mirror.shown)
