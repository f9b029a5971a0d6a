"""The runs of a store that holds several, and those of them that the user wants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from gradtrend.errors import EmptyLogError, InputError

_MAX_RUNS_LISTED = 10  # enough to find one's run again, short enough for one screen
_NEAREST = 5


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run of a store.

    `started` is in seconds since the epoch; `place` is where the adapter finds it again, `folders` are those that hold
    its other logs; `experiment` has the names by which its experiment or project is known, `parent` the id of the run
    that it is nested in. `damage` says what is wrong with the store as a whole, for its readers to tell. `given` says
    that the path is this very run, whatever its state. `state` is a digest of what a server says of it with its list of
    runs, its last values among it, which changes when more is logged; empty for stores whose files tell that.
    """

    id: str
    name: str | None
    started: float | None
    has_metrics: bool
    deleted: bool = False
    place: str = ""
    experiment: tuple[str, ...] = ()
    parent: str = ""
    damage: str = ""
    given: bool = False
    folders: tuple[str, ...] = ()
    state: str = ""

    def __str__(self) -> str:
        when = "start unknown"
        if self.started is not None:
            with suppress(ValueError, OverflowError, OSError):  # a time far outside the calendar
                when = datetime.fromtimestamp(self.started, UTC).strftime("started %Y-%m-%d %H:%M:%S UTC")
        return f"{self.id} ({self.name or 'no name'}, {when})"


@dataclass(frozen=True, slots=True)
class WantedRuns:
    """Which runs of a store the user wants: those of these ids (or names, or beginnings of either), of one experiment,
    the newest alone; all that have metrics where nothing is said.
    """

    ids: tuple[str, ...] = ()
    experiment: str | None = None
    newest: bool = False

    def __bool__(self) -> bool:
        return bool(self.ids or self.experiment or self.newest)


def chosen(runs: Sequence[StoredRun], wanted: WantedRuns, store: str) -> tuple[StoredRun, ...]:
    """The wanted runs, the oldest first. Deleted runs, and those without metrics, are among them only where their full
    id or their own path was given. Raises InputError where there is none, or an id fits none or is not clear.
    """
    of_experiment = _of_experiment(runs, wanted.experiment, store)
    if wanted.ids:
        found = {run.id: run for word in wanted.ids for run in _named(of_experiment, word, store)}
        usable = list(found.values())
    else:
        usable = [run for run in of_experiment if run.given or (run.has_metrics and not run.deleted)]
    if not usable:
        raise EmptyLogError(
            f"{store} holds no run with metrics ({len(runs)} runs in all)",
            "Check that the run logged metrics here, or give another store.",
        )
    oldest_first = sorted(usable, key=_start)
    return tuple(oldest_first[-1:] if wanted.newest else oldest_first)


def newest(runs: Sequence[StoredRun], store: str) -> StoredRun:
    """The newest run that has metrics. Raises EmptyLogError where there is none."""
    return chosen(runs, WantedRuns(newest=True), store)[0]


def without_metrics(runs: Sequence[StoredRun]) -> str:
    """The runs that logged nothing and are not there for those nested in them, in words; empty without such."""
    parents = {run.parent for run in runs}
    return listed([run for run in runs if not (run.has_metrics or run.deleted or run.given or run.id in parents)])


def listed(runs: Sequence[StoredRun], most: int = _MAX_RUNS_LISTED) -> str:
    """Up to so many runs in words."""
    more = len(runs) - most
    return "; ".join(str(run) for run in runs[:most]) + (f"; and {more} more" if more > 0 else "")


def _of_experiment(runs: Sequence[StoredRun], wanted: str | None, store: str) -> Sequence[StoredRun]:
    """The runs of the wanted experiment. Raises InputError where it has none."""
    if wanted is None:
        return runs
    found = [run for run in runs if wanted in run.experiment]
    if found:
        return found
    names = sorted({f"{run.experiment[-1]} ({run.experiment[0]})" for run in runs if run.experiment})
    hint = f"It has runs of: {', '.join(_near(wanted, names))}" if names else "Its runs belong to no experiment."
    raise InputError(f"no run of an experiment {wanted} in {store}", hint)


def _named(runs: Sequence[StoredRun], wanted: str, store: str) -> Sequence[StoredRun]:
    """The runs that a word names: the one of that id, all of that name, or the one whose id or name begins so. Of one
    without metrics those that are nested in it.

    Raises InputError where it names none, or is the beginning of several.
    """
    present = [run for run in runs if not run.deleted]
    matches = [run for run in runs if run.id == wanted] or [run for run in present if run.name == wanted]
    if matches:
        return [one for run in matches for one in _with_metrics(run, present)]
    begun = [run for run in present if run.id.startswith(wanted)]
    begun = begun or [run for run in present if run.name is not None and run.name.startswith(wanted)]
    if len(begun) == 1:
        return _with_metrics(begun[0], present)
    if begun:
        raise InputError(
            f"--run-id {wanted} fits {len(begun)} runs of {store}",
            f"Give one full id or name: {listed(_newest_first(begun))}",
        )
    raise InputError(f"no run {wanted} in {store}", _what_is_there(wanted, present))


def _with_metrics(run: StoredRun, runs: Sequence[StoredRun]) -> Sequence[StoredRun]:
    """The run, or where it has no metrics and others are nested in it, those."""
    nested = [] if run.has_metrics else [other for other in runs if other.parent == run.id and other.has_metrics]
    return nested or [run]


def _what_is_there(wanted: str, runs: Sequence[StoredRun]) -> str:
    """A hint with the runs whose names or ids come nearest to a word, then the newest ones."""
    if not runs:
        return "It holds no runs."
    by_word = {word: run for run in runs for word in (run.id, run.name) if word}
    close = dict.fromkeys(by_word[word].id for word in _near(wanted, list(by_word)) if word in by_word)
    of_id = {run.id: run for run in runs}
    ordered = [of_id[run_id] for run_id in close] + [run for run in _newest_first(runs) if run.id not in close]
    return f"It holds: {listed(ordered)}"


def _near(wanted: str, words: list[str]) -> list[str]:
    """The words that look like the wanted one, else the first of all."""
    import difflib

    return difflib.get_close_matches(wanted, words, n=_NEAREST, cutoff=0.5) or words[:_MAX_RUNS_LISTED]


def _newest_first(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """The runs by start time, newest first; those without one come last."""
    return sorted(runs, key=_start, reverse=True)


def _start(run: StoredRun) -> float:
    return -math.inf if run.started is None else run.started
