"""SQLite databases, read so that no byte changes, no file appears beside them, and no database takes for ever."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path

from gradtrend.errors import InputError
from gradtrend.ingest.files.regular import buffered, copy_regular
from gradtrend.ingest.limits import LEAST_STEPS, LONGEST_VALUE, SECONDS_FOR_A_COPY, SECONDS_FOR_A_WRITER, STEPS_A_BYTE

DAMAGE = (sqlite3.Error, UnicodeDecodeError)  # sqlite3 decodes names and messages of a damaged file without care
_WAL_VERSION = 2  # the file format's "read version" at byte 19 in write-ahead-log mode
_LOG_HEADER = 32  # bytes of a write-ahead log, with the salt that every restart of it changes
_LONGEST_REASON = 200  # characters
_STEPS_A_CALL = 100_000


@contextmanager
def connection_to(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a database that changes no byte of it and lets no file appear beside it.

    sqlite may write when it merely reads: a write-ahead log needs an index file, a left-over journal is rolled back.
    A database with either is read from a copy. Raises InputError where it cannot be opened.
    """
    path = path.resolve()
    try:
        companions = [path.with_name(path.name + ending) for ending in ("-wal", "-journal")]
        live = [companion for companion in companions if companion.is_file() and companion.stat().st_size]
        steps = max(LEAST_STEPS, STEPS_A_BYTE * sum(file.stat().st_size for file in (path, *live)))
        with tempfile.TemporaryDirectory(prefix="gradtrend-") if live else nullcontext() as folder:
            uri = _in_place(path, companions) if folder is None else _copied((path, *live), Path(folder))
            with closing(sqlite3.connect(uri, uri=True, timeout=SECONDS_FOR_A_WRITER)) as connection:
                if folder is not None:
                    _held_open(connection, Path(folder))
                connection.text_factory = lambda data: data.decode("utf-8", "replace")
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
                connection.set_progress_handler(_stops_after(steps // _STEPS_A_CALL), _STEPS_A_CALL)
                yield connection
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except sqlite3.OperationalError as error:
        if str(error) != "interrupted":
            raise
        raise InputError(
            f"{path}: reading its tables does not come to an end", "The database is damaged; restore or copy it again."
        ) from error


def _copied(files: Sequence[Path], folder: Path) -> str:
    """The address of a copy of the first file, the others beside it.

    Where a writer has begun its log anew meanwhile, what stood in it is in the database by now and may be missing in
    the copies, which are made again. Raises InputError where that goes on: the copies would be read as damaged.
    """
    until = time.monotonic() + SECONDS_FOR_A_COPY
    while True:
        before = _state(files)
        for file in files:
            copy_regular(file, folder / file.name)
        if _state(files) == before:
            return f"{(folder / files[0].name).as_uri()}?mode=rw"
        if time.monotonic() > until:
            raise InputError(
                f"{files[0]} is written to faster than it can be copied",
                "Wait until the writer is done, or read a copy.",
            )


def _held_open(connection: sqlite3.Connection, folder: Path) -> None:
    """Remove a copy that the connection holds open: who is killed now leaves nothing behind."""
    with suppress(sqlite3.Error, OSError):  # damage, which the reader meets again; a system that keeps open files
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # then the log needs no index beside it
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        for file in list(folder.iterdir()):
            file.unlink()


def _state(files: Sequence[Path]) -> tuple[object, ...]:
    """What changes when a log is begun anew. Rows that are only added to it do not, and what is moved into the database
    still stands in the log, which is copied last; a journal has what stood in the database before its last change.
    """
    heads: list[object] = []
    for log in files[1:]:
        with buffered(log) as file:
            heads.append(file.read(_LOG_HEADER))
        if log.name.endswith("-journal"):
            status = files[0].stat()
            heads += (status.st_mtime_ns, status.st_size)
    return tuple(heads)


def _in_place(path: Path, companions: Sequence[Path]) -> str:
    """The address at which sqlite opens a database without creating a log and an index, or waiting at a pipe."""
    with buffered(path) as file:
        head = file.read(20)
    touches = head[19:20] == bytes([_WAL_VERSION]) or any(companion.exists() for companion in companions)
    return f"{path.as_uri()}?mode=ro{'&immutable=1' if touches else ''}"


def _stops_after(calls: int) -> Callable[[], bool]:
    """A handler that interrupts the database at its so manieth call."""
    left = calls

    def stops() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    return stops


def table_names(connection: sqlite3.Connection) -> set[str]:
    """The names of the tables that have pages of their own. A view can be a query without end, and a virtual table can
    stand for such a view, or run code that counts no steps.
    """
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'create%virtual%'"
    return {name for (name,) in connection.execute(query)}


def damage_in(connection: sqlite3.Connection, tables: Sequence[str]) -> str:
    """What is wrong with these tables, empty where nothing is: broken pages, or indexes that say something else.

    Without this look a row that its index has lost is simply not there. Measured: 2 µs a row.
    """
    try:
        for table in tables:
            for (said,) in connection.execute(f"PRAGMA integrity_check({table})").fetchmany(1):
                if said != "ok":
                    return f"{table}: {str(said).splitlines()[0][:_LONGEST_REASON]}"
    except DAMAGE as error:
        if str(error) == "interrupted":
            raise
        return str(error)
    return ""


def columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    """The column names of a table, which differ between versions; empty without such a table."""
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
