"""The command line where memory is limited: in a process of its own, for native code ends a process that finds none."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from gradtrend.cli.exit_codes import Exit
from gradtrend.cli.output import complain
from gradtrend.loading import loaded
from gradtrend.pipeline.memory import few_threads, memory_limit
from gradtrend.temporary import remove_all

_TERMINATED = 128 + signal.SIGTERM  # as a shell has it


def clean_up_when_terminated() -> None:
    """Let SIGTERM be an exception, so that no process and no temporary file is left behind."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))


def run_apart(run: Callable[[], int]) -> int:
    """The exit code of `run`, which where memory is limited is called in a copy of this process: if that is ended by
    the libraries that it loads, this one says why.
    """
    if memory_limit() is None or not hasattr(os, "fork") or threading.active_count() > 1 or "polars" in sys.modules:
        return run()
    few_threads()
    result, give = os.pipe()
    process = os.fork()
    if not process:
        _run_and_exit(run, give)
    os.close(give)
    loaded()
    try:
        with os.fdopen(result, "rb") as file:
            code = file.read()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    finally:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
        os.waitpid(process, 0)
    return code[0] if code else without_memory()


def without_memory() -> Exit:
    """Say that there was not enough memory for anything."""
    limit = memory_limit()
    granted = f" ({limit >> 20:,} MiB are granted)" if limit is not None else ""
    complain(f"there is not enough memory{granted}", "Give it more: ulimit -v says and sets how much.")
    return Exit.NOT_JUDGED


def _run_and_exit(run: Callable[[], int], give: int) -> NoReturn:
    try:
        _without_native_words()
        code = run()
        if sys.stdout is not None:
            sys.stdout.flush()
        os.write(give, bytes([code]))
    finally:
        remove_all()
        os._exit(0)


def _without_native_words() -> None:
    """Leave standard error to Python: what libraries say before they end the process says the other process."""
    if sys.stderr is None:
        return
    warnings.simplefilter("ignore")  # of libraries that could be loaded in part only
    sys.stderr = os.fdopen(os.dup(2), "w", 1, encoding=sys.stderr.encoding, errors=sys.stderr.errors)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)
