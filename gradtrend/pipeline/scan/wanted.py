"""Which runs of a scan are wanted: by age, verdict, name, and the share of the work that falls to one machine."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from zlib import crc32

from gradtrend.errors import ConfigError
from gradtrend.ingest import Listing, RunFiles
from gradtrend.model.many.badness import SICK
from gradtrend.model.many.record import Record
from gradtrend.model.words import Verdict
from gradtrend.pipeline.selection import split_list

_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.IGNORECASE)
_MAY_BE_A_NUMBER = re.compile(r"[#?\[]|\*\d+(?:\*|$)")  # in a pattern, what can match a run's (#2)
_NUMBERED = re.compile(r"[#\n]\d+$")  # of several runs or shares of one place
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_UNREADABLE = "unreadable"  # stands for a verdict where there is none
_SICK = "sick"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs are wanted. `newer_than` in seconds since the epoch: those with a log that was written to since;
    `verdicts` are allowed ones, None among them for what could not be read, empty for all; patterns as the shell has
    them (`*` also across folders), of whole names of runs; `shard`: which share of how many, counted from 1.
    """

    newer_than: float | None = None
    verdicts: frozenset[Verdict | None] = frozenset()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    shard: tuple[int, int] | None = None

    def has(self, record: Record) -> bool:
        """Whether a run is wanted, of whatever share."""
        return self.compares(record) and (not self.verdicts or record.verdict in self.verdicts)

    def compares(self, record: Record) -> bool:
        """Whether a run is among those that are wanted, of any verdict: what tells sick from healthy takes both."""
        if self.newer_than is not None and record.modified is not None and record.modified < self.newer_than:
            return False
        names = _names(record)
        return not _match(names, self.exclude) and (not self.include or _match(names, self.include))

    def in_shard(self, name: str, root: str) -> bool:
        """Whether logs that are read together, or a run, fall to this machine: by the way that leads to them from the
        root alone, so that all agree on it, however they call the root.
        """
        if self.shard is None:
            return True
        number, count = self.shard
        name = _NUMBERED.sub("", name.removeprefix(root.rstrip("/")).lstrip("/"))
        return crc32(name.encode("utf-8", "surrogateescape")) % count == number - 1

    def may_have(self, share: RunFiles, listing: Listing | None) -> bool:
        """Whether a share may hold a wanted run, as far as can be told without reading it."""
        if not share.logs or (self.newer_than is not None and not self._may_be_new(share, listing)):
            return not share.logs
        if len(share.logs) > 1 or share.stored or share.logs[0].runs or not self.include:
            return True
        # The run is called by its log, or by a folder that the log lies in; a number (#2) may follow.
        return any(map(_MAY_BE_A_NUMBER.search, self.include)) or _match(_places(share), self.include)

    def _may_be_new(self, share: RunFiles, listing: Listing | None) -> bool:
        assert self.newer_than is not None
        if share.remote is not None:
            return any(held.modified >= self.newer_than for held in share.remote.objects)
        states = [None if listing is None else listing.files.get(str(log.path)) for log in share.logs]
        return any(state is None or state.modified / 1e9 >= self.newer_than for state in states)


def unmatched(patterns: Iterable[str], records: Iterable[Record]) -> set[str]:
    """The patterns that fit none of some runs."""
    left = set(patterns)
    for record in records:
        if not left:
            break
        left -= {pattern for pattern in left if _match(_names(record), [pattern])}
    return left


def _names(record: Record) -> list[str]:
    return [record.run] if record.name is None else [record.run, record.name]


def _match(names: Iterable[str], patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _places(share: RunFiles) -> list[str]:
    """What the run of the only log of a share may be called."""
    log = share.logs[0].path
    inside = log.relative_to(share.folder).parts if log.is_relative_to(share.folder) else ()
    return [os.path.join(share.name, *inside[:end]) for end in range(len(inside) + 1)]  # noqa: PTH118  as it was given


def wanted_from(
    newer_than: str | None = None,
    verdict: Sequence[str] = (),
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    shard: str | None = None,
) -> Wanted:
    """Which runs are wanted, as the command line has it. Raises `ConfigError`."""
    return Wanted(
        None if newer_than is None else _since(newer_than),
        _verdicts(split_list(verdict)),
        tuple(include),
        tuple(exclude),
        None if shard is None else _shard(shard),
    )


def _since(text: str) -> float:
    """A time: an age (90s, 30m, 12h, 2d, 1w), or a date in ISO 8601, without a zone in that of this machine."""
    age = _AGE.fullmatch(text.strip())
    if age:
        return time.time() - float(age[1]) * _SECONDS[age[2].lower()]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ConfigError(
            f"--newer-than {text}: neither an age nor a date", "Such as 12h, 2d, 1w, 2026-11-30 or 2026-11-30T18:00."
        ) from None


def _verdicts(words: Sequence[str]) -> frozenset[Verdict | None]:
    found: set[Verdict | None] = set()
    for word in map(str.lower, words):
        if word == _SICK:
            found |= SICK
        elif word == _UNREADABLE:
            found.add(None)
        elif word in set(Verdict):
            found.add(Verdict(word))
        else:
            raise ConfigError(
                f"--verdict: there is no verdict {word!r}", f"Known: {', '.join([*Verdict, _UNREADABLE, _SICK])}."
            )
    return frozenset(found)


def _shard(text: str) -> tuple[int, int]:
    number, slash, count = text.partition("/")
    digits = all(part.isascii() and part.isdigit() and len(part) < 8 for part in (number, count))
    if slash and digits and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise ConfigError(f"--shard {text}: not one of so many shares", "Such as 1/4, 2/4, 3/4 and 4/4 on four machines.")
