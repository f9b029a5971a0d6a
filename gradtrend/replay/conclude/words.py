"""Numbers with their nouns."""

from __future__ import annotations

from collections.abc import Sequence

_SHOWN = 8  # of a list of numbers


def plural(count: int, noun: str) -> str:
    """`1 parameter`, `3 parameters`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def numbers(values: Sequence[int]) -> str:
    """`0, 2, 5 and 3 more`."""
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return ", ".join(str(value) for value in values[:_SHOWN]) + more
