"""What is said of a path that could not be read."""

from __future__ import annotations

from gradtrend.model.report import Failure


def failure_message(failure: Failure) -> str:
    """The message without the path that may stand before it."""
    return failure.message.removeprefix(f"{failure.path}: ")
