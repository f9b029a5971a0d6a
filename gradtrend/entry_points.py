"""What other installed packages bring, by entry point group. Nothing is looked for until a name is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradtrend.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True, slots=True)
class Wanted:
    """One name that was asked for: the group to look into, the option that gave it, and the names that need no look."""

    group: str
    option: str
    what: str
    name: str
    shipped: Sequence[str]

    def unusable(self, origin: str, why: str) -> ConfigError:
        """The error for what the package `origin` brings by this name."""
        return ConfigError(f"{self.option} {self.name}: the package {origin} cannot be used: {' '.join(why.split())}")


def brought(wanted: Wanted) -> tuple[object, str]:
    """What an installed package brings by the name, and which package that is.

    Raises `ConfigError` where none does or several do, or where it cannot be loaded.
    """
    points = _points(wanted)
    named = [point for point in points if point.name == wanted.name]
    if not named:
        raise _unknown(wanted, sorted({point.name for point in points}))
    if len(named) > 1:
        packages = ", ".join(map(_origin, named))
        raise ConfigError(f"{wanted.option} {wanted.name}: brought by {packages}", "Uninstall all but one of them.")
    origin = _origin(named[0])
    try:
        return named[0].load(), origin
    except Exception as error:  # whatever a stranger's module does when it is imported
        raise wanted.unusable(origin, f"{type(error).__name__}: {error}") from error


def _points(wanted: Wanted) -> Sequence[EntryPoint]:
    from importlib.metadata import entry_points

    try:
        return tuple(entry_points(group=wanted.group))
    except Exception as error:  # all packages' files are parsed, and one that is damaged spoils the others'
        why = f"the entry points of the installed packages cannot be read: {type(error).__name__}: {error}"
        raise ConfigError(f"{wanted.option} {wanted.name}: {why}") from error


def _unknown(wanted: Wanted, installed: Sequence[str]) -> ConfigError:
    known = ", ".join(wanted.shipped) + (f"; of installed packages: {', '.join(installed)}" if installed else "")
    return ConfigError(f"{wanted.option}: no {wanted.what} {wanted.name!r}", f"Known: {known}.")


def _origin(point: EntryPoint) -> str:
    """The package of an entry point, and what it names in it."""
    name = point.dist.name if point.dist is not None else None  # None too where its METADATA are missing
    return f"{name or 'of no name'} ({point.value})"
