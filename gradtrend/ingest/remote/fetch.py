"""Objects fetched whole, each in one state: one that changes meanwhile is begun again."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from gradtrend.errors import InputError
from gradtrend.ingest.limits import MOST_FETCHED, MOST_TRIES, REQUESTS_A_WORKER, SECONDS_TO_FETCH
from gradtrend.ingest.remote.clients import opened
from gradtrend.ingest.remote.objects import ChangedError, CutError, GoneError, Held, Missed, Remote
from gradtrend.ingest.remote.refusals import as_cause, heart
from gradtrend.ingest.remote.sparse import empty_again, make, path_of, write_at, written
from gradtrend.ingest.remote.store import Store
from gradtrend.ingest.remote.tasks import at_once, finished
from gradtrend.temporary import new_folder, remove

_T = TypeVar("_T")
_MOST_CHANGES = 3  # of one object while it is fetched; a log is written anew every minute or so
_FIRST_PAUSE = 0.1  # seconds after an answer that was cut, then twice as long each time
_SPARE = 1.1  # of the room that is needed on the disk


@contextmanager
def fetched(remote: Remote) -> Iterator[tuple[Path, list[Missed]]]:
    """The folder in which the objects of a share lie whole, and what of them could not be fetched: their mirror where
    this machine has it, else a folder that lives as long. Raises InputError where nothing can be fetched.
    """
    root = Path(remote.root)
    if root.is_dir():
        lacking = [held for held in remote.objects if held.present < held.size]
        try:
            yield root, _completed(remote, root, lacking) if lacking else []
        finally:
            for held in lacking:
                with suppress(OSError):
                    empty_again(_path(root, held), held)
        return
    folder = new_folder()
    try:
        root = folder / remote.inner
        root.mkdir(parents=True)
        nothing = [replace(held, present=0) for held in remote.objects]
        for held in nothing:
            make(_path(root, held), held)
        yield root, _completed(remote, root, nothing)
    finally:
        remove(folder)


def _path(root: Path, held: Held) -> Path:
    path = path_of(root, held.key)
    assert path is not None  # what the mirror has no place for is not among the objects
    return path


def _completed(remote: Remote, root: Path, lacking: Sequence[Held]) -> list[Missed]:
    check_room(root, sum(held.size - held.present for held in lacking), remote.shown)
    missed: list[Missed] = []
    errors: list[InputError] = []
    work = _all_whole(remote, root, lacking, missed, errors)
    finished(work, SECONDS_TO_FETCH, f"{remote.shown}: not fetched")
    if errors and len(missed) == len(remote.objects):
        raise errors[0]
    return missed


async def _all_whole(
    remote: Remote, root: Path, lacking: Sequence[Held], missed: list[Missed], errors: list[InputError]
) -> None:
    store = opened(remote.address)

    async def take(held: Held) -> None:
        try:
            await whole(store, remote.base, held, _path(root, held))
        except (InputError, GoneError, OSError) as error:
            errors.append(addressed(error, held, remote.shown))
            missed.append(Missed(held.key, reason(error, held, remote.shown), passing=True))

    await at_once(REQUESTS_A_WORKER, take, lacking)


async def whole(store: Store, folder: str, held: Held, path: Path) -> Held:
    """Fetch what the file at `path` lacks of an object, and give its state. Raises InputError, GoneError."""
    tries, changes = 0, 0
    state = held
    while True:
        try:
            with written(path, state) as file:
                at = state.present
                async for piece in store.rest(folder, state):
                    write_at(file, at, piece)
                    at += len(piece)
                    state = replace(state, present=at if store.has_ranges else 0)
            if at == state.size:
                return state
            raise CutError(f"it ended after {at:,} of {state.size:,} bytes")
        except ChangedError as error:
            changes += 1
            if changes > _MOST_CHANGES:
                raise InputError(f"{held.key}: changes all the time while it is read", "Read a copy of it.") from error
            state = replace(error.now, key=held.key, present=0)
        except CutError as error:
            tries += 1
            if tries >= MOST_TRIES:
                raise _no_answer(held.key, tries, error) from as_cause(error)
            await asyncio.sleep(_FIRST_PAUSE * 2**tries)


async def tried(ask: Callable[[], Awaitable[_T]], what: str) -> _T:
    """The answer to a question that is asked again where answers end early. Raises InputError at last."""
    tries = 0
    while True:
        try:
            return await ask()
        except CutError as error:
            tries += 1
            if tries >= MOST_TRIES:
                raise _no_answer(what, tries, error) from as_cause(error)
            await asyncio.sleep(_FIRST_PAUSE * 2**tries)


def _no_answer(what: str, tries: int, error: CutError) -> InputError:
    return InputError(f"{what}: no whole answer in {tries} tries: {heart(str(error))}", "Try again later.")


async def tried_head(store: Store, folder: str, held: Held, size: int) -> tuple[bytes, Held]:
    """The first bytes of an object, and its state. Raises InputError, GoneError."""
    try:
        return await tried(partial(store.head, folder, held, size), held.key)
    except ChangedError as error:  # it was cut down since it was listed
        return b"", replace(error.now, key=held.key)


def check_room(folder: Path, size: int, shown: str) -> None:
    """Raise InputError where so many bytes are more than are meant to lie here, or have no room."""
    if size > MOST_FETCHED:
        raise InputError(
            f"{shown}: {size >> 30:,} GiB of logs are to be read at once", "Give a folder further down, or one log."
        )
    free = shutil.disk_usage(folder).free
    if size * _SPARE > free:
        raise InputError(
            f"{shown}: no room for {size >> 20:,} MiB in {folder.parent}", "Set TMPDIR to a folder on a larger disk."
        )


def reason(error: Exception, held: Held, shown: str) -> str:
    """Why an object was not fetched, without the address, which stands before it anyway."""
    if isinstance(error, GoneError):
        return "is not there any more"
    text = error.message if isinstance(error, InputError) else str(error)
    return text.removeprefix(f"{shown}: ").removeprefix(f"{held.key}: ")


def addressed(error: Exception, held: Held, shown: str) -> InputError:
    """The error of an object, with its address."""
    hint = error.hint if isinstance(error, InputError) else None
    return InputError(f"{shown}/{held.key}: {reason(error, held, shown)}", hint)
