"""Which paths are addresses, and of what: of a remote place, or of a format's own, as a database's or a server's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from gradtrend.errors import InputError
from gradtrend.ingest.formats import adapters_of
from gradtrend.ingest.reading import Address

if TYPE_CHECKING:  # loaded where there is an address
    from gradtrend.ingest.remote.address import RemoteAddress

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # of two letters at least: C: is a drive


def is_remote(path: str, source: str = "auto") -> bool:
    """Whether a path is the address of a place that no reader can open. Raises InputError for one without a bucket."""
    return remote_place(path, source) is not None


def shown_address(path: str, source: str = "auto") -> str:
    """A path as people may be told it: of a remote place without passwords and signatures."""
    try:
        address = remote_place(path, source)
    except InputError:
        from gradtrend.ingest.remote.address import without_secrets

        return without_secrets(path)
    return path if address is None else address.shown


def remote_place(path: str, source: str) -> RemoteAddress | None:
    if "://" not in path or not _ADDRESS.match(path) or Path(path).exists():
        return None
    from gradtrend.ingest.remote.address import further_address, remote_address

    found = remote_address(path, source)
    return found if found is not None or format_address(path, source) is not None else further_address(path)


def format_address(path: str, source: str) -> Address | None:
    """What an address means to the format that it is of, None where it is a path."""
    if not _ADDRESS.match(path) or Path(path).exists():  # a file may have any name
        return None
    asked = (adapter.address(path) for adapter in adapters_of(source) if adapter.address is not None)
    return next((address for address in asked if address is not None), None)
