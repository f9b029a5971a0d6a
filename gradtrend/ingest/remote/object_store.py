"""S3, Google Cloud Storage, Azure and files of web servers, by obstore."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

from gradtrend.errors import InputError, MissingPackageError
from gradtrend.ingest.limits import (
    MOST_TRIES,
    PIECE_BYTES,
    SECONDS_A_REQUEST,
    SECONDS_OF_TRIES,
    SECONDS_TO_CONNECT,
    SECONDS_TO_FETCH,
)
from gradtrend.ingest.remote.address import RemoteAddress
from gradtrend.ingest.remote.objects import ChangedError, CutError, Folder, GoneError, Held
from gradtrend.ingest.remote.refusals import as_cause, refusal, status_of, too_many
from gradtrend.ingest.remote.store import joined

_STREAMED_BYTES = 1 << 16
_LISTED_AT_ONCE = 1000  # what servers give in one answer
# What obstore finds by itself in the environment; where none is set, boto3 may know more (profiles, single sign-on).
_OWN_CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
)
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


class ObjectStore:
    """A bucket."""

    has_ranges = True

    def __init__(self, address: RemoteAddress, store: Any = None) -> None:
        self._address = address
        self.key = address.key
        self._obs = _obstore()
        self._store = self._opened() if store is None else store

    def _opened(self) -> Any:
        s3 = self._address.scheme in ("s3", "s3a")
        said = {name: os.environ[name] for name in _ENDPOINTS if s3 and os.environ.get(name)}
        for name, endpoint in said.items():
            if "://" not in endpoint:
                raise InputError(f"{name} is no address: {endpoint}", "Write http:// or https:// before it.")
        plain = any(endpoint.startswith("http://") for endpoint in said.values())
        try:
            more = {"credential_provider": provider} if s3 and (provider := _provider_of_boto3()) is not None else {}
            url = f"{self._address.scheme}://{self._address.bucket}"
            return self._obs.store.from_url(url, client_options=_client(plain), retry_config=_retries(), **more)
        except Exception as error:
            raise refusal(error, self._address) from as_cause(error)

    async def below(self, folder: str, most: int) -> list[Held]:
        """As `Store` has it."""
        found: list[Held] = []
        try:
            async for page in self._obs.list(self._store, folder or None, chunk_size=_LISTED_AT_ONCE):
                found += (_held(one, folder) for one in page)
                if len(found) > most:
                    raise too_many(self._address, most)
        except InputError:
            raise
        except FileNotFoundError:
            return []
        except Exception as error:
            raise refusal(error, self._address, folder) from as_cause(error)
        return found

    async def inside(self, folder: str) -> Folder:
        """As `Store` has it."""
        try:
            found = await self._obs.list_with_delimiter_async(self._store, folder or None)
        except Exception as error:
            raise refusal(error, self._address, folder) from as_cause(error)
        names = [prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"]]
        return Folder([_held(one, folder) for one in found["objects"]], names)

    async def one(self, key: str) -> Held:
        """As `Store` has it."""
        try:
            return _held(await self._obs.head_async(self._store, key), key.rpartition("/")[0])
        except FileNotFoundError as error:
            raise GoneError(key) from error
        except Exception as error:
            raise refusal(error, self._address, key) from as_cause(error)

    async def head(self, folder: str, held: Held, size: int) -> tuple[bytes, Held]:
        """As `Store` has it."""
        return await self._got(folder, held, 0, size)

    async def rest(self, folder: str, held: Held) -> AsyncIterator[bytes]:
        """As `Store` has it."""
        for start in range(held.present, held.size, PIECE_BYTES):
            piece, now = await self._got(folder, held, start, min(start + PIECE_BYTES, held.size))
            if not now.is_same(held):
                raise ChangedError(now)
            yield piece

    async def _got(self, folder: str, held: Held, start: int, end: int) -> tuple[bytes, Held]:
        key = joined(folder, held.key)
        try:
            result = await self._obs.get_async(self._store, key, options={"range": (start, end)})
        except FileNotFoundError as error:
            raise GoneError(key) from error
        except Exception as error:
            if status_of(error) == 416:  # it is shorter now than it was
                raise ChangedError(await self.one(key)) from error
            raise refusal(error, self._address, key) from as_cause(error)
        return await _body(result), _held(result.meta, folder)


class WebFile:
    """One file of a web server, which is read from its beginning to its end: not every server knows ranges."""

    has_ranges = False
    key = ""

    def __init__(self, address: RemoteAddress) -> None:
        self._address = address
        self._obs = _obstore()
        try:
            client = _client(address.scheme == "http", SECONDS_TO_FETCH)
            self._store = self._obs.store.HTTPStore(address.given, client_options=client, retry_config=_retries())
        except Exception as error:
            raise refusal(error, address) from as_cause(error)

    async def below(self, folder: str, most: int) -> list[Held]:
        """A web server lists nothing."""
        return []

    async def inside(self, folder: str) -> Folder:
        """A web server lists nothing."""
        return Folder()

    async def one(self, key: str) -> Held:
        """The file. (A signature may be for GET alone, so that HEAD is not asked.)"""
        return self._named(await self._result())

    async def head(self, folder: str, held: Held, size: int) -> tuple[bytes, Held]:
        """The whole file, whatever its size: it is read once."""
        result = await self._result()
        return await _body(result), self._named(result)

    async def rest(self, folder: str, held: Held) -> AsyncIterator[bytes]:
        """As `Store` has it."""
        result = await self._result()
        now = self._named(result)
        if not now.is_same(held):
            raise ChangedError(now)
        pieces = aiter(result.stream(min_chunk_size=_STREAMED_BYTES))
        while (piece := await self._next(pieces)) is not None:
            yield piece

    async def _next(self, pieces: Any) -> bytes | None:
        """The next bytes of an answer, which as a whole may take long; None at its end."""
        try:
            async with asyncio.timeout(SECONDS_A_REQUEST):
                return bytes(await anext(pieces))
        except StopAsyncIteration:
            return None
        except Exception as error:
            raise CutError(str(error) or "no further byte") from as_cause(error)

    async def _result(self) -> Any:
        try:
            async with asyncio.timeout(SECONDS_OF_TRIES):
                return await self._obs.get_async(self._store, "")
        except TimeoutError as error:
            raise CutError("no answer") from error
        except FileNotFoundError as error:
            raise GoneError(self._address.shown) from error
        except Exception as error:
            raise refusal(error, self._address) from as_cause(error)

    def _named(self, result: Any) -> Held:
        return _held({**result.meta, "path": self._address.parts[-1]}, "")


def _obstore() -> Any:
    try:
        import obstore.store
    except ImportError as error:
        raise MissingPackageError(
            "obstore is not installed, which reads object stores and web servers",
            "pip install 'gradtrend[remote]'",
        ) from error
    return obstore


def _provider_of_boto3() -> Any:
    """What boto3 knows of credentials, where it is installed and the environment says nothing. Raises what it does
    where it knows none: it asks for a machine's role as obstore would, and gives up sooner.
    """
    if any(os.environ.get(name) for name in _OWN_CREDENTIALS):
        return None
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        return None
    return Boto3CredentialProvider()


def _client(allow_http: bool, seconds: float = SECONDS_A_REQUEST) -> dict[str, Any]:
    return {
        "allow_http": allow_http,
        "connect_timeout": timedelta(seconds=SECONDS_TO_CONNECT),
        "timeout": timedelta(seconds=seconds),
    }


def _retries() -> dict[str, Any]:
    return {
        "max_retries": MOST_TRIES - 1,
        "retry_timeout": timedelta(seconds=SECONDS_OF_TRIES),
        "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2},
    }


def _held(meta: Mapping[str, Any], folder: str) -> Held:
    path = str(meta["path"])
    key = path[len(folder) + 1 :] if folder else path
    return Held(key, int(meta["size"]), meta["last_modified"].timestamp(), meta["e_tag"] or meta["version"])


async def _body(result: Any) -> bytes:
    try:
        return bytes(await result.bytes_async())
    except Exception as error:
        raise CutError(str(error)) from as_cause(error)
