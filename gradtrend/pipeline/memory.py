"""How much memory this process may have, and errors for want of it."""

from __future__ import annotations

import errno
import os

NO_MEMORY = "there was not enough memory to read it"
TOO_DEEP = "it is nested too deep"  # the stack is memory, too
# What native code says that finds none: the loader of libraries, the allocator, those who start threads.
_WORDS = ("cannot allocate memory", "failed to map segment", "can't start new thread", "failed to spawn", "ThreadPool")


def memory_limit() -> int | None:
    """The bytes of memory that were granted to this process (`ulimit -v`), None where there is no such limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    granted = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min((limit for limit in granted if limit != resource.RLIM_INFINITY), default=None)


def few_threads() -> None:
    """Ask for one thread a library, of those not loaded yet: each thread reserves memory for a stack and a heap."""
    for name in ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("MALLOC_ARENA_MAX", "1")
    os.environ.setdefault("_RJEM_MALLOC_CONF", "background_thread:false")  # of the allocator within polars


def lacks_memory(error: BaseException) -> bool:
    """Whether an error, or one that it came of, is for want of memory; where memory is limited, also one of a library
    that could be loaded in part only.
    """
    if memory_limit() is not None and (isinstance(error, SystemError | ImportError) or _is_foreign(error)):
        return True  # C code that finds none may end without saying so
    seen: BaseException | None = error
    for _ in range(10):
        if seen is None:
            return False
        if isinstance(seen, MemoryError) or (isinstance(seen, OSError) and seen.errno == errno.ENOMEM):
            return True
        if any(word.lower() in str(seen).lower() for word in _WORDS):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _is_foreign(error: BaseException) -> bool:
    """Whether an error was raised by other code than ours."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and not trace.tb_frame.f_globals.get("__name__", "").startswith("gradtrend")
