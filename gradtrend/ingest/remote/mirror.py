"""An address -> its mirror: a tree of sparse files, of which those that may be logs have their first bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.files.streams import is_cut_too_early
from gradtrend.ingest.limits import (
    LARGEST_BESIDE,
    LARGEST_SETTINGS,
    LONGEST_HEAD,
    MOST_OBJECTS,
    REQUESTS_AT_ONCE,
    SECONDS_TO_LIST,
)
from gradtrend.ingest.reading import HEAD_BYTES, SQLITE_COMPANIONS, SQLITE_MAGIC
from gradtrend.ingest.remote.address import RemoteAddress, is_file_name
from gradtrend.ingest.remote.clients import opened
from gradtrend.ingest.remote.fetch import addressed, check_room, reason, tried, tried_head, whole
from gradtrend.ingest.remote.objects import CutError, GoneError, Held, Missed
from gradtrend.ingest.remote.refusals import DeniedError, nothing_there
from gradtrend.ingest.remote.sparse import folder_name, make, path_of, write_at, written
from gradtrend.ingest.remote.store import Store, joined
from gradtrend.ingest.remote.tasks import at_once, finished

_SETTINGS = (".yaml", ".yml", ".json", ".toml")
_LONGER_HEAD = {".wandb": 256 << 10}  # where a run says who it is
_DEBUG = "debug"  # the folder of captured steps, beside a log
_MOST_FAILED = 5  # objects that cannot be read, before the store is given up


@dataclass
class Mirror:
    """A folder of a store as a folder here. `root` is the mirror of the folder `base`, which is `shown` to people;
    `path` is the mirror of what was asked for: the root, or one file in it. `objects` are those that have a file there
    by their keys, `missed` the others.
    """

    address: RemoteAddress
    root: Path
    inner: str
    path: Path
    base: str
    shown: str
    objects: dict[str, Held] = field(default_factory=dict)
    missed: list[Missed] = field(default_factory=list)

    def shown_key(self, held: Held) -> str:
        """The address of an object."""
        return f"{self.shown}/{held.key}"


def listed(address: RemoteAddress, matters: Callable[[str], bool]) -> dict[str, Held]:
    """What lies at an address and `matters`, by keys, by the addresses of the objects. Raises as `mirrored`."""

    async def ask() -> dict[str, Held]:
        below, file = await _seen(opened(address), address)
        above = address.shown if file is None else address.shown.rpartition("/")[0]
        return {f"{above}/{held.key}": held for held in _chosen(below, file, matters)}

    return finished(ask(), SECONDS_TO_LIST, f"{address.shown}: not listed")


def mirrored(
    address: RemoteAddress, matters: Callable[[str], bool], folder: Path, is_known: Callable[[str, Held], bool]
) -> Mirror:
    """The mirror of an address, made in an empty folder; of what lies there that which `matters`, by keys. Of objects
    that are `known`, by their addresses, the first bytes are not fetched.

    Raises InputError where there is nothing, or it cannot be listed within limits; MissingPackageError.
    """
    try:
        return finished(_mirrored(address, matters, folder, is_known), SECONDS_TO_LIST, f"{address.shown}: not listed")
    except OSError as error:  # of this disk: what goes wrong with a store is told by its client
        raise InputError(f"{address.shown}: {error.strerror or error}, in {folder.parent}") from error


def _chosen(below: Sequence[Held], file: Held | None, matters: Callable[[str], bool]) -> list[Held]:
    return [held for held in below if (file is not None and held.key == file.key) or matters(held.key)]


async def _mirrored(
    address: RemoteAddress, matters: Callable[[str], bool], folder: Path, is_known: Callable[[str, Held], bool]
) -> Mirror:
    store = opened(address)
    below, file = await _seen(store, address)
    inner = "/".join(map(folder_name, (address.parts if file is None else address.parts[:-1]) or ["_"]))
    root = folder / inner
    root.mkdir(parents=True, exist_ok=True)
    if file is None:
        mirror = Mirror(address, root, inner, root, store.key, address.shown)
    else:
        base = store.key.rpartition("/")[0]
        mirror = Mirror(address, root, inner, root / file.key, base, address.shown.rpartition("/")[0])
    wanted = _chosen(below, file, matters)
    folders = {folder for held in wanted for folder in _folders_of(held.key)}
    for held in sorted(wanted, key=lambda one: one.key):
        if is_captured(held.key) and held.size > LARGEST_BESIDE:
            mirror.missed.append(Missed(held.key, f"larger than {LARGEST_BESIDE >> 20} MiB, and no log"))
        elif held.key not in folders:
            _place(mirror, held)
        elif held.size:  # an empty one says only that there is a folder
            mirror.missed.append(Missed(held.key, "its key is also that of a folder"))
    new = [held for held in mirror.objects.values() if first_bytes(held) and not is_known(mirror.shown_key(held), held)]
    check_room(root, sum(first_bytes(held) if store.has_ranges else held.size for held in new), address.shown)
    await _read_heads(mirror, store, new)
    return mirror


def _folders_of(key: str) -> Iterator[str]:
    while (key := key.rpartition("/")[0]) != "":
        yield key


async def _seen(store: Store, address: RemoteAddress) -> tuple[list[Held], Held | None]:
    """What lies below an address; or, where a file lies there, what belongs to that, and the file itself."""
    last = address.parts[-1] if address.parts else ""
    if not is_file_name(last):
        below = await tried(partial(store.below, store.key, MOST_OBJECTS), address.shown)
        if any(held.size for held in below):
            return below, None
    if last and (store.key or not store.has_ranges):
        with suppress(GoneError):
            file = await tried(partial(store.one, store.key), address.shown)
            return [file, *await _beside(store, address, file)], file
    below = await tried(partial(store.below, store.key, MOST_OBJECTS), address.shown)
    if not below:
        raise nothing_there(address)
    return below, None


async def _beside(store: Store, address: RemoteAddress, file: Held) -> list[Held]:
    """What belongs to a log that was given by itself: settings and a database's companions beside it, captures."""
    if address.by == "web":
        return []
    base = store.key.rpartition("/")[0]
    try:
        folder = await store.inside(base)
        captured = await store.below(joined(base, _DEBUG), MOST_OBJECTS) if _DEBUG in folder.folders else []
    except (InputError, GoneError, CutError):  # it may be allowed to read an object, and not to list
        return []
    names = {file.key + ending for ending in SQLITE_COMPANIONS} | {file.key.removesuffix(".json")}
    near = [held for held in folder.objects if held.key in names or held.key.lower().endswith(_SETTINGS)]
    return [held for held in near if held.key != file.key] + [
        replace(held, key=f"{_DEBUG}/{held.key}") for held in captured
    ]


def _place(mirror: Mirror, held: Held) -> None:
    """Give an object its file."""
    path = path_of(mirror.root, held.key)
    if path is None:
        mirror.missed.append(Missed(held.key, "its key is no path"))
        return
    try:
        make(path, held)
    except OSError as error:
        clash = isinstance(error, FileExistsError)  # where a disk does not tell `A` from `a`
        why = "another key has its name here" if clash else error.strerror or str(error)
        mirror.missed.append(Missed(held.key, why))
        return
    mirror.objects[held.key] = held


def first_bytes(held: Held) -> int:
    """How many first bytes of an object are needed to tell what it is."""
    name = held.key.rpartition("/")[2].lower()
    if is_captured(held.key) and not name.endswith((".log", ".txt")):
        return 0
    if name.endswith(_SETTINGS) and held.size <= LARGEST_SETTINGS:
        return held.size
    suffix = f".{name.rpartition('.')[2]}"
    return min(held.size, _LONGER_HEAD.get(suffix, HEAD_BYTES))


def is_settings(key: str) -> bool:
    """Whether an object is named as files of settings are."""
    return key.lower().endswith(_SETTINGS)


def is_captured(key: str) -> bool:
    """Whether an object lies among captured steps."""
    return _DEBUG in key.split("/")[:-1]


async def _read_heads(mirror: Mirror, store: Store, new: Sequence[Held]) -> None:
    """Fetch the first bytes of what may be a log, and databases whole: a store's runs are listed before one is read."""
    failed: list[InputError] = []
    denied = 0

    async def take(held: Held) -> None:
        nonlocal denied
        path = mirror.root / held.key
        try:
            now = await _with_head(store, mirror.base, held, path)
            if now.present < now.size and _is_of_database(mirror, held.key):
                check_room(mirror.root, now.size, mirror.shown)
                state = await whole(store, mirror.base, now, path)
                now = replace(state, present=state.size)
            mirror.objects[held.key] = now
        except GoneError:
            _drop(mirror, held, "")
        except InputError as error:
            denied += isinstance(error, DeniedError)
            failed.append(addressed(error, held, mirror.shown))
            _drop(mirror, held, reason(error, held, mirror.address.shown))
            if len(failed) - denied > _MOST_FAILED:
                raise failed[-1] from error

    await at_once(REQUESTS_AT_ONCE, take, new)
    if failed and not mirror.objects:
        raise failed[0]


def _drop(mirror: Mirror, held: Held, why: str) -> None:
    del mirror.objects[held.key]
    (mirror.root / held.key).unlink(missing_ok=True)
    if why:
        mirror.missed.append(Missed(held.key, why, passing=True))


async def _with_head(store: Store, base: str, held: Held, path: Path) -> Held:
    """The object with its first bytes written, in the state in which these were read."""
    if not store.has_ranges:
        state = await whole(store, base, held, path)
        return replace(state, key=held.key, present=state.size)
    data, now = await tried_head(store, base, held, first_bytes(held))
    if now.size > len(data) and is_cut_too_early(data, HEAD_BYTES):
        data, now = await tried_head(store, base, held, min(now.size, LONGEST_HEAD))
    now = replace(now, key=held.key, size=max(now.size, len(data)), present=len(data))
    with written(path, now) as file:
        write_at(file, 0, data)
    return now


def _is_of_database(mirror: Mirror, key: str) -> bool:
    """Whether an object is a database of SQLite, or what belongs to one."""
    database = next((key.removesuffix(end) for end in SQLITE_COMPANIONS if key.endswith(end)), None)
    if database is not None:
        return database in mirror.objects
    with (mirror.root / key).open("rb") as file:
        return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
