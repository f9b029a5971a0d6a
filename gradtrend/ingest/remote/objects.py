"""What a store holds, and what of it belongs to a share of logs; plain values that are sent to other processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

from gradtrend.ingest.remote.address import RemoteAddress


@dataclass(frozen=True, slots=True)
class Held:
    """One object: `key` leads to it from the folder that was listed, `size` is in bytes, `modified` in seconds since
    the epoch; `version` differs where the content does (an ETag), None where the store has no such word. The first
    `present` bytes of it are in the mirror.
    """

    key: str
    size: int
    modified: float
    version: str | None = None
    present: int = 0

    def is_same(self, other: Held) -> bool:
        """Whether both are one state of an object."""
        if self.version is not None and other.version is not None:
            return self.version == other.version
        return self.size == other.size and self.modified == other.modified

    @property
    def stamp(self) -> int:
        """A number that differs where the state of the object does, but for its size."""
        text = f"{self.modified!r} {self.version}"
        return int.from_bytes(blake2b(text.encode("utf-8", "surrogateescape"), digest_size=7).digest(), "big")


@dataclass(frozen=True, slots=True)
class Remote:
    """Where the logs of a share come from, enough for any machine to fetch them: the address, the folder `base` in the
    store below which the `objects` lie, how that folder is `shown`, and the `root` of its mirror where it was listed,
    of which the last parts, `inner`, are made of the address: names of folders say something.
    """

    address: RemoteAddress
    base: str
    shown: str
    root: str
    inner: str
    objects: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True)
class Missed:
    """An object that is not in the mirror, or not whole, and why; `unread` says that it may be a log, `passing` that it
    lies in this moment: that it could not be fetched.
    """

    key: str
    reason: str
    unread: bool = True
    passing: bool = False


class ChangedError(Exception):
    """An object is not what it was; `now` is what it is."""

    def __init__(self, now: Held) -> None:
        super().__init__(now.key)
        self.now = now


class CutError(Exception):
    """An answer ended before its end: worth another try."""


class GoneError(Exception):
    """There is no such object."""


@dataclass(frozen=True, slots=True)
class Folder:
    """What lies in a folder of a store, and nothing of what lies deeper: the objects, and the folders' names."""

    objects: list[Held] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
