"""Independent pieces of work on processes of their own: none of them can take this one, or another's result, along."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from gradtrend.pipeline.memory import NO_MEMORY, TOO_DEEP, lacks_memory
from gradtrend.pipeline.workers import READY, Job, Worker, end_all, forked, may_fork, spawned

_T = TypeVar("_T")
_R = TypeVar("_R")

# With this much to do a second process is faster: a new one has loaded what it needs after half a second.
LEAST_SECONDS = 0.5
_MOST_PROCESSES = 16  # each takes 100 MB, and one disk feeds them all
_MOST_FAILED_STARTS = 3  # in a row: then something ends them all, as a script without a guard does

_GUESSES = {"SIGKILL": "out of memory?", "SIGABRT": "out of memory?", "SIGBUS": "was the file cut while it was read?"}


@dataclass(frozen=True, slots=True)
class Lost:
    """What stands in place of a result: why there is none."""

    reason: str


def available_processes() -> int:
    """How many cores this process may use, up to a limit."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return min(_MOST_PROCESSES, len(affinity(0)) if affinity else os.cpu_count() or 1)


def in_order(
    work: Callable[[_T], _R],
    items: Sequence[_T],
    seconds: float,
    processes: int,
    streams: Collection[int] = (),
    quiet: bool = True,
    heard: Callable[[int, _R], None] | None = None,
) -> list[_R | Lost]:
    """`work` of each item, in the order of the items, on so many processes beside this one where `seconds` of it in
    all pay for several, and on one else; with 0 processes here, unguarded.

    An item that kills its process is tried once more with nothing beside it, and is `Lost` if that is killed as well,
    or for want of memory. Other errors are raised here. Where no process can be started the work is done here. `work`,
    items and results must be picklable where processes cannot be forked; what cannot be sent is done here. `streams`
    are the places of items that can be taken up once, and by no new process; with `quiet` nothing is shown of what the
    others say on standard error. `heard` is given each result with its place as soon as it is there.
    Raises `UnguardedScriptError` in a process that was started and, for want of a guard, has come here by the script.
    """
    if not processes:
        return [_here(work, item, place, heard) for place, item in enumerate(items)]
    count = max(1, min(processes, len(items))) if seconds >= LEAST_SECONDS else 1
    crew: _Crew[_R] = _Crew(Job(work, items, 1 if count > 1 else None, quiet), may_fork(), streams, heard)
    for place, code in crew.run(range(len(items)), count).items():
        again = {place: code} if place in streams else crew.run([place], 1)
        if again:
            crew.results[place] = Lost(_how(again[place]))
    return [
        crew.results[place] if place in crew.results else _here(work, item, place, heard)
        for place, item in enumerate(items)
    ]


def _here(work: Callable[[_T], _R], item: _T, place: int, heard: Callable[[int, _R], None] | None) -> _R:
    result = work(item)
    if heard is not None:
        heard(place, result)
    return result


class _Crew(Generic[_R]):
    """The processes of a call, and what they have given so far by the places of the items."""

    def __init__(self, job: Job, fork: bool, streams: Collection[int], heard: Callable[[int, _R], None] | None) -> None:
        self._job = job
        self._fork = fork
        self._streams = streams
        self._tell = heard
        self.results: dict[int, _R | Lost] = {}

    def run(self, places: Sequence[int], count: int) -> dict[int, int]:
        """Fill in the results of the items at these places, as far as processes can be started. Gives the exit codes
        of the processes that died, by the places of the items that they died of.
        """
        todo = deque(place for place in places if self._fork or place not in self._streams)
        died: dict[int, int] = {}
        workers: list[Worker] = []
        failed = 0
        try:
            while busy := [worker for worker in workers if worker.place is not None] or todo:
                while failed < _MOST_FAILED_STARTS and len(workers) < min(count, len(todo) + len(busy)):
                    failed = failed if self._started(workers) else _MOST_FAILED_STARTS
                if not workers:
                    break
                for worker in _ready(workers):
                    if self._heard(worker):
                        failed = 0
                        _give_next(worker, todo)
                        continue
                    workers.remove(worker)
                    code = worker.died()
                    if worker.place is None:  # by an error it would end so again
                        failed += 1 if code < 0 else _MOST_FAILED_STARTS
                    else:
                        died[worker.place] = code
        finally:
            end_all(workers)
        return died

    def _started(self, workers: list[Worker]) -> bool:
        worker = forked(self._job, workers) if self._fork else spawned(self._job)
        workers += [] if worker is None else [worker]
        return worker is not None

    def _heard(self, worker: Worker) -> bool:
        """Take what a process says; False where it says nothing any more."""
        try:
            message = worker.connection.recv()
        except (EOFError, OSError):
            return False
        except MemoryError as error:
            message = False, error
        if message != READY and worker.place is not None:
            place, worker.place = worker.place, None
            self.results[place] = result = cast(_R, message[1]) if message[0] else _lost(message[1])
            if self._tell is not None and not isinstance(result, Lost):
                self._tell(place, result)
        return True


def _ready(workers: Sequence[Worker]) -> list[Worker]:
    """Those that have said something, or ended, of which there is at least one."""
    from multiprocessing.connection import wait

    heard = wait([worker.connection for worker in workers])
    return [worker for worker in workers if worker.connection in heard]


def _give_next(worker: Worker, todo: deque[int]) -> None:
    if not todo:
        return
    try:
        worker.connection.send(todo[0])
    except OSError:  # it has ended, which is heard next
        return
    worker.place = todo.popleft()


def _lost(error: BaseException) -> Lost:
    """What stands for a result that there was no memory for. Raises any other error."""
    if lacks_memory(error):
        return Lost(NO_MEMORY)
    if isinstance(error, RecursionError):
        return Lost(TOO_DEEP)
    raise error


def _how(code: int) -> str:
    """How a process ended, for people."""
    if code >= 0:
        return f"the process that read it ended (exit code {code}): out of memory?"
    try:
        guess = _GUESSES.get(signal.Signals(-code).name)
    except ValueError:
        guess = None
    return f"the process that read it was killed (signal {-code})" + (f": {guess}" if guess else "")
