"""What the user's code and torch raise, in one line."""

from __future__ import annotations

_SHOWN = 200  # characters of a message


def first_line(error: BaseException) -> str:
    """The first line of an error's message; the class alone where there is none, as of a bare assert."""
    return _first_line(error) or type(error).__name__


def named(error: BaseException) -> str:
    """The class and the first line of an error."""
    line = _first_line(error)
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:_SHOWN] if lines else ""
