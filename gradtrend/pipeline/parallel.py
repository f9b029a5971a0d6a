"""Independent pieces of work on several processes, where there is enough of it to pay for starting them."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from gradtrend.errors import UnguardedScriptError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_T = TypeVar("_T")
_R = TypeVar("_R")

# A new process has loaded what it needs after about half a second of its core: with this much to do two are faster.
LEAST_SECONDS = 1.5
_MOST_PROCESSES = 16  # each takes 100 MB, and one disk feeds them all
_GUARD = "Put what the script does under `if __name__ == '__main__':`."


def available_processes() -> int:
    """How many cores this process may use, up to a limit."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return min(_MOST_PROCESSES, len(affinity(0)) if affinity else os.cpu_count() or 1)


def in_order(work: Callable[[_T], _R], items: Sequence[_T], seconds: float, processes: int) -> list[_R]:
    """`work` of each item, in the order of the items, on so many processes where `seconds` of it in all pay for them.

    `work`, items and results must be picklable. This process takes a share itself, and that of any other that cannot be
    started or ends without results: killed by the system for its memory, or by an error, which is raised here.
    Raises `UnguardedScriptError` in a process that was started and, for want of a guard, has come here by the script.
    """
    count = max(1, min(processes, len(items))) if seconds >= LEAST_SECONDS else 1
    own, *others = (items[first::count] for first in range(count))
    waiting = [_start(work, share) for share in others]
    done = [[work(item) for item in own]]
    for connection, share in zip(waiting, others, strict=True):
        results: list[_R] | None = None if connection is None else _received(connection)
        done.append([work(item) for item in share] if results is None else results)
    return [done[place % count][place // count] for place in range(len(items))]


def _start(work: Callable[[_T], _R], items: Sequence[_T]) -> Connection | None:
    """A connection to a new process that does a share: its results, or the end of the stream, will come through it.

    None where this process may have no more processes or files, or the work cannot be sent to another.
    """
    from multiprocessing import get_context

    try:  # pickled here, so that the new process loads what the work needs only after it has set itself up
        job = pickle.dumps((work, items))
    except (pickle.PicklingError, AttributeError, TypeError):  # another package's format may hold a lambda
        return None

    context = get_context("spawn")  # not forked: polars has threads, and a fork copies their locks without them
    try:
        ours, theirs = context.Pipe()
    except OSError:
        return None
    process = context.Process(target=_do_share, args=(theirs,), daemon=True)
    with theirs:  # and then the only other end is the process's: when it dies, the stream ends
        try:
            with _deaf_to_ctrl_c():
                process.start()
        except (OSError, AssertionError):  # the second in a process that may not have others
            ours.close()
            return None
        except RuntimeError as error:  # only in a process that is itself being started
            raise UnguardedScriptError("a process that was started runs the script again", _GUARD) from error
    try:  # not with the process: one that dies before it reads leaves `start` waiting for ever on more than 64 KB
        ours.send_bytes(job)
    except OSError:
        ours.close()
        return None
    return ours


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


def _received(connection: Connection) -> list[_R] | None:
    """What a process sent, None where it ended without."""
    with connection, suppress(EOFError, OSError):
        results: list[_R] = connection.recv()
        return results
    return None


def _do_share(connection: Connection) -> None:
    """What a new process does, in one thread, for the others' cores are taken."""
    os.environ["POLARS_MAX_THREADS"] = "1"  # read when polars is loaded, which the first piece of work does
    from multiprocessing import parent_process

    parent = parent_process()
    results = []
    # An error is met by the parent as well, which says it; polars raises the other even where SIGINT is ignored.
    with connection, suppress(Exception, KeyboardInterrupt):
        work, items = pickle.loads(connection.recv_bytes())
        for item in items:
            if parent is not None and not parent.is_alive():  # ended by a signal, which leaves it no time to end others
                return
            results.append(work(item))
        connection.send(results)
