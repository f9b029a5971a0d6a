"""What a client of any store can do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from gradtrend.ingest.remote.objects import Folder, Held


class Store(Protocol):
    """One bucket, server or file system. Keys lead from its root; where a folder is given the keys of what is found
    lead from that.

    All raise InputError, with what to do, where the store refuses or does not answer after a bounded number of tries;
    GoneError for an object that is not there, CutError for an answer that ends early.
    """

    has_ranges: bool  # whether an object can be read from its middle
    key: str  # of the address

    async def below(self, folder: str, most: int) -> list[Held]:
        """All objects below a folder; InputError where there are more than `most`."""

    async def inside(self, folder: str) -> Folder:
        """What lies in a folder itself."""

    async def one(self, key: str) -> Held:
        """One object, with the last part of its key."""

    async def head(self, folder: str, held: Held, size: int) -> tuple[bytes, Held]:
        """The first bytes of an object, and its state when they were read."""

    def rest(self, folder: str, held: Held) -> AsyncIterator[bytes]:
        """The bytes of an object behind those that are `present`; ChangedError where it is not what it was."""


def joined(folder: str, key: str) -> str:
    """The key of what lies below a folder; both may be empty."""
    return f"{folder}/{key}" if folder and key else folder or key
