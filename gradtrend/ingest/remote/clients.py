"""The client of an address. Each is loaded where it is needed."""

from __future__ import annotations

from gradtrend.ingest.remote.address import RemoteAddress
from gradtrend.ingest.remote.store import Store


def opened(address: RemoteAddress) -> Store:
    """The client of an address. Raises MissingPackageError, and InputError for settings that cannot be used."""
    if address.by == "fsspec":
        from gradtrend.ingest.remote.file_system import FileSystem

        return FileSystem(address)
    from gradtrend.ingest.remote.object_store import ObjectStore, WebFile

    return WebFile(address) if address.by == "web" else ObjectStore(address)
