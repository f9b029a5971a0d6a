"""Hugging Face's hub, SFTP and what else fsspec knows.

Its calls wait, so that each has a thread; they are daemons, as one that hangs must not keep the program.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from gradtrend.errors import MissingPackageError
from gradtrend.ingest.limits import PIECE_BYTES, SECONDS_OF_TRIES
from gradtrend.ingest.remote.address import RemoteAddress
from gradtrend.ingest.remote.objects import ChangedError, CutError, Folder, GoneError, Held
from gradtrend.ingest.remote.refusals import as_cause, heart, refusal, too_many
from gradtrend.ingest.remote.store import joined

_T = TypeVar("_T")
_BUSY = (429, 500, 502, 503, 504)  # answers that may be others in a moment
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
_VERSIONS = ("ETag", "etag", "blob_id", "sha", "oid", "uid")


class FileSystem:
    """A file system of fsspec; keys are its paths."""

    has_ranges = True

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise MissingPackageError(
                f"fsspec is not installed, which reads {address.scheme}://", "pip install 'gradtrend[remote]'"
            ) from error
        try:
            self._fs, self.key = url_to_fs(address.given)
        except ImportError as error:
            needed = str(error).splitlines()[0] if str(error) else f"fsspec needs a package for {address.scheme}://"
            raise MissingPackageError(f"{address.shown}: {needed}", _package_for(address.scheme)) from error
        except Exception as error:
            raise refusal(error, address) from as_cause(error)

    async def below(self, folder: str, most: int) -> list[Held]:
        """As `Store` has it."""
        place = self._place(folder)
        found = await self._asked(place, lambda: self._fs.find(place, detail=True), or_else={})
        if len(found) > most:
            raise too_many(self._address, most)
        return [self._held(info, place) for path, info in found.items() if path.strip("/") != place.strip("/")]

    async def inside(self, folder: str) -> Folder:
        """As `Store` has it."""
        place = self._place(folder)
        found = await self._asked(place, lambda: self._fs.ls(place, detail=True), or_else=[])
        files = [self._held(info, place) for info in found if info["type"] == "file"]
        names = [str(info["name"]).rstrip("/").rpartition("/")[2] for info in found if info["type"] == "directory"]
        return Folder(files, names)

    async def one(self, key: str) -> Held:
        """As `Store` has it."""
        place = self._place(key)
        with suppress(Exception):  # what was listed is kept by most
            self._fs.invalidate_cache()
        info = await self._asked(place, lambda: self._fs.info(place))
        if info["type"] != "file":
            raise GoneError(key)
        return self._held(info, place.rpartition("/")[0])

    async def head(self, folder: str, held: Held, size: int) -> tuple[bytes, Held]:
        """As `Store` has it."""
        place = self._place(joined(folder, held.key))
        return bytes(await self._asked(place, lambda: self._fs.cat_file(place, 0, min(size, held.size)))), held

    async def rest(self, folder: str, held: Held) -> AsyncIterator[bytes]:
        """As `Store` has it."""
        key = joined(folder, held.key)
        place = self._place(key)
        for start in range(held.present, held.size, PIECE_BYTES):
            end = min(start + PIECE_BYTES, held.size)
            piece = bytes(await self._asked(place, partial(self._fs.cat_file, place, start, end)))
            now = await self.one(key)
            if not now.is_same(held) or len(piece) != end - start:
                raise ChangedError(now)
            yield piece

    def _place(self, key: str) -> str:
        return f"/{key}" if self.key.startswith("/") and not key.startswith("/") else key

    async def _asked(self, place: str, call: Callable[[], Any], or_else: Any = None) -> Any:
        """What a call about a place gives; `or_else` where there is no such place, GoneError where that is None."""
        try:
            async with asyncio.timeout(SECONDS_OF_TRIES):
                return await _in_thread(call)
        except FileNotFoundError as error:
            if or_else is not None:
                return or_else
            raise GoneError(self._address.shown) from error
        except ImportError as error:
            raise MissingPackageError(f"{self._address.shown}: {error}", _package_for(self._address.scheme)) from error
        except (ConnectionError, TimeoutError, EOFError) as error:
            raise CutError(heart(str(error), self._address) or type(error).__name__) from as_cause(error)
        except Exception as error:
            if getattr(getattr(error, "response", None), "status_code", None) in _BUSY:
                raise CutError(heart(str(error), self._address)) from as_cause(error)
            raise refusal(error, self._address, place) from as_cause(error)

    def _held(self, info: Mapping[str, Any], place: str) -> Held:
        key = str(info["name"]).strip("/").removeprefix(place.strip("/")).lstrip("/")
        version = next((str(info[name]) for name in _VERSIONS if info.get(name) is not None), None)
        time = next((info[name] for name in _TIMES if info.get(name) is not None), 0.0)
        return Held(key, int(info.get("size") or 0), _seconds(time), version)


def _package_for(scheme: str) -> str:
    return "pip install huggingface_hub" if scheme == "hf" else f"Install what fsspec needs for {scheme}://."


def _seconds(time: Any) -> float:
    if isinstance(time, datetime):
        return time.timestamp()
    try:
        return float(time)
    except (TypeError, ValueError):
        with suppress(TypeError, ValueError):
            return datetime.fromisoformat(time).timestamp()
        return 0.0


async def _in_thread(call: Callable[[], _T]) -> _T:
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[_T] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if outcome.done():  # given up since
            return
        if error is None:
            outcome.set_result(result)
        else:
            outcome.set_exception(error)

    def work() -> None:
        result, failed = None, None
        try:
            result = call()
        except StopIteration as error:  # which a future does not take
            failed = RuntimeError(str(error))
        except BaseException as error:
            failed = error  # type: ignore[assignment]
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, result, failed)

    threading.Thread(target=work, daemon=True, name="gradtrend-fetch").start()
    return await outcome
