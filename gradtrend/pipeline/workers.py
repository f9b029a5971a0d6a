"""Processes that do pieces of work, one at a time: forked where that is safe, else started afresh."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from gradtrend.errors import UnguardedScriptError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

READY = "ready"  # what a process says first; one that dies before that has not died of an item
_GUARD = "Put what the script does under `if __name__ == '__main__':`."
_SECONDS_TO_END = 1.0  # for a process that is told to end, to remove what it has put into the temporary folder
_PAUSE_SECONDS = 0.005
# Threads that a fork may leave behind: jemalloc sets itself right, polars' cleaner waits until something is spilled.
_HARMLESS_THREADS = frozenset({"jemalloc_bg_thd", "polars-ooc-clea"})


@dataclass(frozen=True, slots=True)
class Job:
    """What all processes of a call do: `work` of items, which are sent by their places. `threads`: of polars in each,
    None for as many as it takes by itself; `quiet`: nothing of what they say on standard error is shown.
    """

    work: Callable[[Any], Any]
    items: Sequence[Any]
    threads: int | None
    quiet: bool


class Worker:
    """One process, and the connection to it: a place goes in, whether it went well and the result or error come out."""

    def __init__(self, connection: Connection, process: SpawnProcess | int) -> None:
        self.connection = connection
        self._process = process
        self._ended: int | None = None  # its exit code
        self.place: int | None = None  # of the item that it works on

    def end(self) -> int:
        """End the process, however it stands, and give its exit code, of one killed by a signal the negative number."""
        self.stop()
        until = time.monotonic() + _SECONDS_TO_END
        while (code := self._code()) is None:
            if time.monotonic() > until:
                self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
            time.sleep(_PAUSE_SECONDS)
        return code

    def stop(self) -> None:
        """Tell the process to end."""
        self.connection.close()
        if self._code() is None:
            self._signal(signal.SIGTERM)

    def died(self) -> int:
        """The exit code of a process that has closed its end of the connection."""
        until = time.monotonic() + _SECONDS_TO_END
        while (code := self._code()) is None and time.monotonic() < until:
            time.sleep(_PAUSE_SECONDS)
        self.connection.close()
        return self.end() if code is None else code

    def _code(self) -> int | None:
        if not isinstance(self._process, int):
            return self._process.exitcode
        if self._ended is None:
            try:
                ended, status = os.waitpid(self._process, os.WNOHANG)
            except ChildProcessError:  # another part of this program has waited for it
                ended, status = self._process, 0
            self._ended = os.waitstatus_to_exitcode(status) if ended else None
        return self._ended

    def _signal(self, number: int) -> None:
        process = self._process if isinstance(self._process, int) else self._process.pid
        assert process is not None
        with suppress(ProcessLookupError, PermissionError):  # it has ended since
            os.kill(process, number)


def end_all(workers: Collection[Worker]) -> None:
    """End processes, all at once."""
    for worker in workers:
        worker.stop()
    for worker in workers:
        worker.end()


def may_fork() -> bool:
    """Whether a copy of this process is sound: no thread runs here that could hold a lock, which would stay held; and
    no process has started this one, which may have come here by a script without a guard.
    """
    from multiprocessing import parent_process

    if parent_process() is not None:
        return False
    if sys.platform != "linux" or threading.active_count() > 1 or "torch" in sys.modules:
        return False
    try:
        own = Path("/proc/self/comm").read_text()
        names = {task.joinpath("comm").read_text() for task in Path("/proc/self/task").iterdir()}
    except OSError:
        return False
    return {name.strip() for name in names - {own}} <= _HARMLESS_THREADS  # OpenBLAS's have the process's own name


def forked(job: Job, others: Collection[Worker]) -> Worker | None:
    """A copy of this process that works; None where there may be no more. `others` are those that work already."""
    from multiprocessing import Pipe

    try:
        ours, theirs = Pipe()
    except OSError:
        return None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of threads: see `may_fork`
            process = os.fork()
        if not process:
            _serve_and_exit(job, theirs, [ours, *(other.connection for other in others)], before)
    except OSError:
        ours.close()
        return None
    finally:
        theirs.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return Worker(ours, process)


def _serve_and_exit(job: Job, connection: Connection, not_its: list[Connection], signals: set[Any]) -> NoReturn:
    """What a copy does. It never returns into what this process was about to do, and leaves no word behind."""
    code = 1
    try:
        _listen_to_the_parent_alone()
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        for other in not_its:  # else nobody would see it when this process's parent, or another's, is gone
            other.close()
        serve(job, connection)
        code = 0
    finally:
        os._exit(code)


def spawned(job: Job) -> Worker | None:
    """A new process that works; None where there may be no more, or the work cannot be sent to another.

    Raises `UnguardedScriptError` in a process that was started and, for want of a guard, has come here by the script.
    """
    from multiprocessing import get_context

    try:  # pickled here, so that the new process loads what the work needs only after it has set itself up
        data = pickle.dumps(job)
    except (pickle.PicklingError, AttributeError, TypeError):  # another package's format may hold a lambda
        return None
    context = get_context("spawn")
    try:
        ours, theirs = context.Pipe()
    except OSError:
        return None
    process = context.Process(target=_serve_what_comes, args=(theirs,), daemon=True)
    with theirs:  # and then the only other end is the process's: when it dies, the stream ends
        try:
            with _deaf_to_ctrl_c():
                process.start()
        except (OSError, AssertionError):  # the second in a process that may not have others
            ours.close()
            return None
        except RuntimeError as error:  # only in a process that is itself being started
            raise UnguardedScriptError("a process that was started runs the script again", _GUARD) from error
    worker = Worker(ours, process)
    try:  # not with the process: one that dies before it reads leaves `start` waiting for ever on more than 64 KB
        ours.send_bytes(data)
    except OSError:
        worker.end()
        return None
    return worker


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Ignore SIGINT. What is started inherits that for good: this process takes the others along when it ends."""
    if threading.current_thread() is not threading.main_thread():  # which alone may set it
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _listen_to_the_parent_alone() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what lies in the temporary folder is removed


def _silence() -> None:
    """What native code says when it ends a process (polars, the allocator, OpenBLAS) is said by the parent instead."""
    with suppress(OSError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 2)
        os.close(nothing)


def _serve_what_comes(connection: Connection) -> None:
    """What a new process does."""
    _listen_to_the_parent_alone()
    with suppress(EOFError, OSError), connection:
        serve(pickle.loads(connection.recv_bytes()), connection)


def serve(job: Job, connection: Connection) -> None:
    """Work on what comes, until the parent has no more or is gone."""
    if job.quiet:
        _silence()
    if job.threads is not None:
        os.environ["POLARS_MAX_THREADS"] = str(job.threads)  # read when polars' threads are first needed
    with suppress(EOFError, OSError):
        connection.send(READY)
        while True:
            _send(connection, *_done(job.work, job.items[connection.recv()]))


def _done(work: Callable[[Any], Any], item: Any) -> tuple[bool, Any]:
    try:
        return True, work(item)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # polars' panics are no `Exception`
        return False, error


def _send(connection: Connection, well: bool, outcome: Any) -> None:
    try:
        data = pickle.dumps((well, outcome))
    except OSError:
        raise
    except MemoryError:
        data = pickle.dumps((False, MemoryError()))
    except Exception as error:  # of another package: what no other process can be given
        what = outcome if isinstance(outcome, BaseException) else error
        data = pickle.dumps((False, RuntimeError(f"{type(what).__name__}: {what}")))
    connection.send_bytes(data)
