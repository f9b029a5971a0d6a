"""What an adapter gives back, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import polars as pl

from gradtrend.ingest.reading.stored_runs import StoredRun, WantedRuns
from gradtrend.model.runlog import Note, Settings, Skipped

# One row a logged value, in the order logged. `step` is null where the log gives none (load then numbers the rows).
POINTS_SCHEMA = pl.Schema({"step": pl.Int64, "value": pl.Float64, "time": pl.Float64, "line": pl.Int64})
HEAD_BYTES = 64 * 1024  # of a file, given to an adapter to tell it by: enough for the first rows of any log
SQLITE_MAGIC = b"SQLite format 3\0"  # here, since a test for it must not load sqlite3
SQLITE_COMPANIONS = ("-wal", "-shm", "-journal")  # files beside a database without which it cannot be read
NO_NORM_FOUND = "no-norm-found"  # the kind of a note that counts only where no log of the run has a norm
MAX_SKIPPED_KEPT = 100  # the report lists the first 100 and a count


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What is to be read of a path: `run`, of a store that holds several, its newest where none is said. `columns`
    names those of a table of numbers without a header; `names` are the metrics that the user says are logged.
    """

    run: StoredRun | None = None
    columns: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Address:
    """What the address of a store, or of a page of it, means: the place of the store, and the runs it speaks of."""

    place: str
    wanted: WantedRuns = field(default_factory=WantedRuns)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one source of one run held.

    `series` has a table of `POINTS_SCHEMA`, not empty, for each metric, in the order in which they first came; metrics
    that were logged together may share columns. `digits` is how many significant digits the source keeps (17 for
    float64, 7 for float32, less for console text): it decides which of two sources is better and how closely they must
    agree. `numbered` says that the steps are row numbers, for want of any in the log, `signs` what its lines mention,
    `goes_on` that training went on after its end, in another part of the log: its last words are none of the run's.
    `started` (seconds since the epoch, if known) orders the parts of a resumed run. `run` is the run of a store that it
    was read from, `given` what the source says that the run was given, as it stands there. `with_skipped` adds what
    could not be used.
    """

    format: str
    path: Path
    series: Mapping[str, pl.DataFrame]
    digits: int = 17
    started: float | None = None
    skipped: tuple[Skipped, ...] = ()
    skipped_count: int = 0
    notes: tuple[Note, ...] = ()
    settings: Settings = field(default_factory=Settings)
    numbered: bool = False
    goes_on: bool = False
    run: StoredRun | None = None
    signs: frozenset[str] = frozenset()
    given: Mapping[str, Any] = field(default_factory=dict)

    def with_skipped(self, pieces: Iterable[Skipped], further: int = 0) -> Reading:
        """The reading with pieces that could not be used behind those it has.

        The first ones are kept. All are counted, and so are `further` ones, where a piece stands for several.
        """
        left = iter(pieces)
        kept = (*self.skipped, *islice(left, MAX_SKIPPED_KEPT - len(self.skipped)))
        added = len(kept) - len(self.skipped) + sum(1 for _ in left) + further
        return replace(self, skipped=kept, skipped_count=self.skipped_count + added)


@dataclass(frozen=True, slots=True)
class Adapter:
    """One format.

    `claims(path, head)` says whether a file (with its first `HEAD_BYTES`) or a folder (head is b"") is of this format;
    it is cheap and reads nothing more. `read` returns one Reading, or several where one path holds several parts of a
    run; it raises `InputError` where nothing can be used and lists lesser damage in `Reading.skipped`. `read_stream` is
    for formats that can be read once from a pipe.

    `holds(path, head, names)` says whether a file can be read as this format by somebody who knows that it logs one of
    these metrics, though nothing else tells it.

    What the format's own tools take for granted: `one_run_a_folder`, that files side by side are of one run;
    `folder_a_series`, that a writer may put one series into a folder named after it.

    A format whose paths are stores has `runs`: all runs of a store, for the caller to choose from, or no more than
    those wanted where that is less work; `read` then reads `ReadOptions.run`. `address` says what an address means that
    is no path of a file, None where it is not of this format.
    """

    name: str
    claims: Callable[[Path, bytes], bool]
    read: Callable[[Path, ReadOptions], Sequence[Reading]]
    read_stream: Callable[[BinaryIO], Sequence[Reading]] | None = None
    holds: Callable[[Path, bytes, Sequence[str]], bool] | None = None
    one_run_a_folder: bool = False
    folder_a_series: bool = False
    runs: Callable[[Path, WantedRuns], Sequence[StoredRun]] | None = None
    address: Callable[[str], Address | None] | None = None


class Reader(Protocol):
    """The module that reads a format, `claims` and `read` as `Adapter` has them."""

    def claims(self, path: Path, head: bytes, /) -> bool: ...

    def read(self, path: Path, options: ReadOptions, /) -> Sequence[Reading]: ...


def late(name: str, may_be: Callable[[Path, bytes], bool], reader: Callable[[], Reader], **about: Any) -> Adapter:
    """The adapter of a format whose reader is loaded only for what `may_be`, a cheap test of name and first bytes,
    lets pass; `about` are the adapter's further attributes.

    Both functions must be named in a module: an adapter is sent to other processes.
    """
    return Adapter(name, partial(_claims, may_be, reader), partial(_read, reader), **about)


def _claims(may_be: Callable[[Path, bytes], bool], reader: Callable[[], Reader], path: Path, head: bytes) -> bool:
    return may_be(path, head) and reader().claims(path, head)


def _read(reader: Callable[[], Reader], path: Path, options: ReadOptions) -> Sequence[Reading]:
    return reader().read(path, options)
