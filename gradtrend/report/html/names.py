"""Of names that begin alike what tells them apart."""

from __future__ import annotations

from collections.abc import Sequence


def without_common(names: Sequence[str]) -> list[str]:
    """The names without the whole words (up to a dot or slash) in which all begin and end."""
    begin = len(common_start(names))
    end = len(common_start([name[begin:][::-1] for name in names]))
    short = [name[begin : len(name) - end] for name in names]
    return short if all(short) else list(names)


def common_start(names: Sequence[str], ends: str = "./") -> str:
    """What all names begin with, up to the last of the characters that end a word."""
    low, high = min(names, default=""), max(names, default="")
    alike = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return low[: max(low.rfind(end, 0, alike) for end in ends) + 1]
