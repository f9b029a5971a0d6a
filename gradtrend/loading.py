"""Ctrl-C while the command line is being loaded, where there is nothing yet to interrupt or to clean up."""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than all of this
if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 130  # what a shell says of a program that Ctrl-C has ended
_NAMES = frozenset({"gradtrend", "gradtrend.exe", "gradtrend-script.py"})


def quiet_while_loading() -> None:
    """End at once and without a word on Ctrl-C, if this process is the command line and no program that imports us."""
    if _is_command_line() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def loaded() -> None:
    """From here on Ctrl-C is an exception again: there is work that cleans up behind itself."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def done() -> None:
    """The command line has said what it had to say: Ctrl-C changes nothing any more."""
    if _is_command_line():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def _is_command_line() -> bool:
    program = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119  nothing more is to be loaded yet
    return program in _NAMES or " -m gradtrend " in f"{' '.join(sys.orig_argv)} "
