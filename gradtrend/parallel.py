"""Independent pieces of work on several processes, where there is enough of it to pay for starting them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")

# A new process has loaded what it needs after about half a second of its core.
LEAST_SECONDS = 1.5
MOST_PROCESSES = 16  # each takes 100 MB, and one disk feeds them all
_ITEMS_AT_ONCE = 8  # few enough that no process is left with the last ones, enough that sending them costs nothing


def available_processes() -> int:
    """How many cores this process may use, up to a limit."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return min(MOST_PROCESSES, len(affinity(0)) if affinity else os.cpu_count() or 1)


def in_order(work: Callable[[_T], _R], items: Sequence[_T], seconds: float, processes: int) -> list[_R]:
    """`work` of each item, in the order of the items, on so many processes where `seconds` of it in all pay for them.

    `work`, items and results must be picklable. Where a process is killed (by the system, for its memory), this one
    does the rest.
    """
    results: list[_R] = []
    if processes > 1 and len(items) > 1 and seconds >= LEAST_SECONDS:
        _on_processes(work, items, processes, results)
    return results + [work(item) for item in items[len(results) :]]


def _on_processes(work: Callable[[_T], _R], items: Sequence[_T], processes: int, results: list[_R]) -> None:
    """Append the results, in order, as far as the processes live."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    at_once = min(_ITEMS_AT_ONCE, -(-len(items) // processes))
    # Not forked: polars has threads, and a fork copies their locks without them.
    with suppress(BrokenProcessPool), ProcessPoolExecutor(processes, get_context("spawn"), _prepare) as pool:
        for result in pool.map(work, items, chunksize=at_once):
            results.append(result)


def _prepare() -> None:
    """What a new process does first: one thread, for the others' cores are taken; Ctrl-C ends it without a word."""
    os.environ["POLARS_MAX_THREADS"] = "1"  # read when polars is loaded, which the first piece of work does
    signal.signal(signal.SIGINT, signal.SIG_DFL)
